"""The style of all figures, and the figures and tables that do not belong to one chapter."""

from pu_lib.extras import naming_the_extra

with naming_the_extra():
    import matplotlib  # noqa: F401 - so that the error of every module here names the extra
