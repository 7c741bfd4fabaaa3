from msgspec import Meta as Meta

from ctrlmgr.api.resource import Key as Key
from ctrlmgr.errors import AlreadyExists as AlreadyExists
from ctrlmgr.errors import ApiError as ApiError
from ctrlmgr.errors import Conflict as Conflict
from ctrlmgr.errors import Invalid as Invalid
from ctrlmgr.errors import NotFound as NotFound
from ctrlmgr.errors import TerminalError as TerminalError
from ctrlmgr.framework.admission import Refused as Refused
from ctrlmgr.framework.admission import Write as Write
from ctrlmgr.framework.app import App as App
from ctrlmgr.framework.app import Watch as Watch
from ctrlmgr.framework.client import Client as Client
from ctrlmgr.framework.context import Context as Context
from ctrlmgr.framework.declaration import Column as Column
from ctrlmgr.framework.declaration import Scale as Scale
from ctrlmgr.framework.definition import definition_of as definition_of
from ctrlmgr.framework.model import Condition as Condition
from ctrlmgr.framework.model import Kind as Kind
from ctrlmgr.framework.model import Metadata as Metadata
from ctrlmgr.framework.model import Model as Model
from ctrlmgr.framework.model import Status as Status
from ctrlmgr.framework.model import Untyped as Untyped
from ctrlmgr.framework.reading import Cache as Cache
from ctrlmgr.manager.reconcile import Result as Result

__version__: str
__all__: list[str]
