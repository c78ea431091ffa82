"""A filter for the list of all claims, by scope, status and text.

``ledger_filter.js`` hides lines of `pu_lib.claims.tables.ledger_index`, so all are visible if
scripts are disabled. It also finds the text of a claim, which the line does not show. The address
of the page can preset the filter: ``ledger.html?scope=statement&status=open``.
"""

from __future__ import annotations

import anywidget
import traitlets

from pu_lib.claims.tables import SCOPES, scope_counts, status_counts
from pu_lib.explorers.base import HERE

__all__ = ["LedgerFilter"]


class LedgerFilter(anywidget.AnyWidget):
    """The filter as a widget; its traits store the reader's choices.

    Attributes
    ----------
    scope, status : str
        The names of a scope and of a status in lower case, or an empty string for all.
    words : str
        Text that a line or its claim must contain, ignoring case.
    scopes, statuses : dict
        The scopes and statuses in use, by name, each with its title and its number of claims.
    """

    _esm = HERE / "ledger_filter.js"
    _css = HERE / "ledger_filter.css"

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
