"""The page at `/ui`: a window on the log and on the process, for people; it can change nothing.

Guarantees:
- What it shows of the log it asks through `ctrlmgr.inspection`, on connections that can only read, in threads of its
  own: the event loop never waits for a database, and the API's own reads do not wait behind a page's.
- Every answer is bounded, in rows and in time.
- The page itself holds no data and is open to every client; what is below `/ui/api` takes the credentials everything
  takes.
- It needs nothing but this server: no other host, no inline script, nothing to build.

`site` answers requests, `assets` with files, the others with JSON: `timeline` and `density` tell what happened when,
`tables` and `objects` what there was, `graph` why, `process` what goes on. `reader` asks the database for them.
"""

from ctrlmgr.ui.process import Process
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.site import Site

__all__ = ["Process", "Reader", "Site"]
