"""The figures of a run: kept by measurement, mode, contestant and round; asked for as medians."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.plan import Mode, Who
from bench.probe import Figures, median


@dataclass(slots=True)
class Results:
    """All rounds of a run."""

    rounds: dict[tuple[str, Mode, Who], list[Figures]] = field(default_factory=dict)

    def add(self, name: str, mode: Mode, who: Who, figures: Figures) -> None:
        """Keep the figures of one round."""
        self.rounds.setdefault((name, mode, who), []).append(figures)

    def median(self, name: str, mode: Mode, who: Who, figure: str) -> float | None:
        """Give the median of one figure over the rounds; None if it was never measured."""
        found = [
            float(figures[figure])
            for figures in self.rounds.get((name, mode, who), [])
            if figures.get(figure) is not None
        ]
        return median(found) if found else None

    def last(self, name: str, mode: Mode, who: Who, figure: str) -> Any:
        """Give a figure that is no number, from the last round; None if it was never measured."""
        rounds = self.rounds.get((name, mode, who), [])
        return rounds[-1].get(figure) if rounds else None

    def ratio(self, name: str, mode: Mode, figure: str, who: Who, to: Who) -> float | None:
        """Give the median of one contestant over the median of another."""
        above, below = self.median(name, mode, who, figure), self.median(name, mode, to, figure)
        return above / below if above is not None and below else None

    def as_json(self) -> dict[str, Any]:
        """Give everything, medians first, in the shape of results/latest.json."""
        tree: dict[str, Any] = {}
        for (name, mode, who), rounds in self.rounds.items():
            numbers = [
                figure
                for figure, value in rounds[0].items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            ]
            medians = {figure: self.median(name, mode, who, figure) for figure in numbers}
            tree.setdefault(name, {}).setdefault(mode, {})[who] = {
                "median": medians,
                "rounds": rounds,
            }
        return tree
