"""The ledger filter: of all claims on the page, those of one scope and status, or with some words.

The rows are those of `pu_lib.claims.tables.ledger_table`; ``ledger_filter.js`` hides those that do
not fit, so that nothing is lost if no script runs. The address of the page may ask for a scope and
a status: ``claims.html?scope=statement&status=open``.
"""

from __future__ import annotations

import pathlib

import anywidget
import traitlets

from pu_lib.claims.tables import SCOPES, scope_counts, status_counts

__all__ = ["LedgerFilter"]

_HERE = pathlib.Path(__file__).parent


class LedgerFilter(anywidget.AnyWidget):
    """The filter as a widget; its state is what the reader chose.

    Attributes
    ----------
    scope, status : str
        The name of a scope and of a status in lower case, or nothing for all.
    words : str
        What a row has to contain, in any case.
    scopes, statuses : dict
        Those in use, by name: words and number of claims.
    """

    _esm = _HERE / "ledger_filter.js"
    _css = _HERE / "ledger_filter.css"

    scope = traitlets.Unicode().tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    scopes = traitlets.Dict(
        {
            scope.name.lower(): [SCOPES[scope], sum(counts.values())]
            for scope, counts in scope_counts().items()
        }
    ).tag(sync=True)
    statuses = traitlets.Dict(
        {status.name.lower(): [status.value, n] for status, n in status_counts().items()}
    ).tag(sync=True)
