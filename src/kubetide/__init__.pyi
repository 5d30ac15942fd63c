from kubetide.api import Fit as Fit
from kubetide.api import Run as Run
from kubetide.api import UsageError as UsageError
from kubetide.api import decide_hpa as decide_hpa
from kubetide.api import decisions as decisions
from kubetide.api import fits as fits
from kubetide.api import read_run as read_run
from kubetide.api import run_scenario as run_scenario
from kubetide.api import why as why

__version__: str
