"""The read-only web page at `/ui`, which shows the log and the process.

Guarantees:
- The page reads the log through `ctrlmgr.inspection`, on read-only connections and in its own threads. Therefore the
  event loop never waits for a database, and reads of the API do not wait for queries of the page.
- Every response has a maximum number of rows, and every query has a time limit.
- The page itself holds no data and is open to every client. Paths below `/ui/api` need the same credentials as the API.
- The page needs only this server: no other host, no inline scripts, no build step.

`site` responds to requests with files from `assets`, or with JSON from the other modules. `timeline` and `density` show
when events occurred. `tables_page` and `object_page` show the state at a revision, `causes_page` shows the causes of a
change, and `process_page` shows the current state of the process. `reader` queries the database for these modules.
"""

from ctrlmgr.ui.process_page import Process
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.site import Site

__all__ = ["Process", "Reader", "Site"]
