"""The read-only web page at `/ui`, which shows the log and the process.

Guarantees:
- It reads the log through `ctrlmgr.inspection`, on read-only connections and in its own threads. So the event loop
  never waits for a database, and the API's reads do not queue behind the page's.
- Every answer is limited in rows and time.
- The page itself holds no data and is open to every client. Paths below `/ui/api` need the same credentials as the API.
- It needs only this server: no other host, no inline scripts, no build step.

`site` answers requests: with files of `assets`, or with JSON of the other modules. `timeline` and `density` show when
events happened, `tables_page` and `object_page` the state at a revision, `causes_page` the causes of a change,
`process_page` the current state of the process. `reader` queries the database for them.
"""

from ctrlmgr.ui.process_page import Process
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.site import Site

__all__ = ["Process", "Reader", "Site"]
