from msgspec import Meta as Meta

from ctrlmgr.api.resource import Key as Key
from ctrlmgr.errors import AlreadyExists as AlreadyExists
from ctrlmgr.errors import ApiError as ApiError
from ctrlmgr.errors import Conflict as Conflict
from ctrlmgr.errors import Invalid as Invalid
from ctrlmgr.errors import NotFound as NotFound
from ctrlmgr.errors import TerminalError as TerminalError
from ctrlmgr.framework.app import App as App
from ctrlmgr.framework.app import Watch as Watch
from ctrlmgr.framework.app_admission import Refused as Refused
from ctrlmgr.framework.app_admission import Write as Write
from ctrlmgr.framework.cached_objects import Cache as Cache
from ctrlmgr.framework.class_declaration import Column as Column
from ctrlmgr.framework.class_declaration import Scale as Scale
from ctrlmgr.framework.derived_definition import definition_of as definition_of
from ctrlmgr.framework.reconcile_context import Context as Context
from ctrlmgr.framework.typed_client import Client as Client
from ctrlmgr.framework.typed_kinds import Condition as Condition
from ctrlmgr.framework.typed_kinds import Kind as Kind
from ctrlmgr.framework.typed_kinds import Metadata as Metadata
from ctrlmgr.framework.typed_kinds import Model as Model
from ctrlmgr.framework.typed_kinds import Status as Status
from ctrlmgr.framework.typed_kinds import Untyped as Untyped
from ctrlmgr.manager.reconcile_result import Result as Result
from ctrlmgr.scheduling.cluster_model import NodeInfo as NodeInfo
from ctrlmgr.scheduling.cluster_model import PodInfo as PodInfo

__version__: str
__all__: list[str]
