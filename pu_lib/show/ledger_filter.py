"""The ledger filter: of all claims on the page, those of one status, or that hold some words.

The rows stand in the tables of `pu_lib.show.ledger.ledger_table`; ``ledger_filter.js`` hides those
that do not fit, so that nothing is lost where no script runs. The address of the page may ask for a
status: ``claims.html?status=open``.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets

from pu_lib.show.ledger import status_counts

__all__ = ["LedgerFilter"]

_HERE = pathlib.Path(__file__).parent


class LedgerFilter(anywidget.AnyWidget):
    """The filter as a widget; its state is what the reader chose.

    Attributes
    ----------
    status : str
        The name of a status in lower case, or nothing for all.
    words : str
        What a row has to contain, in any case.
    statuses : dict
        The statuses in use, by name: words and number of claims.
    """

    _esm = _HERE / "ledger_filter.js"
    _css = _HERE / "ledger_filter.css"

    status = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    statuses = traitlets.Dict(
        {status.name.lower(): [status.value, n] for status, n in status_counts().items()}
    ).tag(sync=True)
