"""Runs cells: sends their lines, and compares what came with what must come."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence

from tenure.verify.cells import ANY, SAVED, Cell, Kind, Line, Mark, Result
from tenure.verify.promises import PROMISES
from tenure.verify.session import Answer
from tenure.verify.stage import Stage
from tenure.verify.waking import CANCEL, SILENCE, WAKE

TRIES = 3
"""How often a cell is tried that somebody else's sweep may have disturbed."""

PATIENCE = 10.0
"""Seconds after which an answer that is asked for again and again is taken for missing."""


def played(cells: Iterable[Cell], stage: Stage) -> Iterator[Result]:
    """The outcomes of cells, in their order."""
    for _, together in itertools.groupby(cells, key=lambda cell: cell.group or id(cell)):
        for script in _side_by_side([*together], stage):
            yield _tried_again(script, stage).result()


def _side_by_side(cells: Sequence[Cell], stage: Stage) -> Sequence[Script]:
    scripts = [Script(cell, stage) for cell in cells]
    for number in range(max(len(cell.lines) for cell in cells)):
        for script in scripts:
            script.play(number)
    stage.reset()
    return scripts


def _tried_again(script: Script, stage: Stage) -> Script:
    """In an existing install any worker may sweep a lapsed lease that a cell wants left alone."""
    for _ in range(1, TRIES):
        if not (script.failed and script.cell.lapses and stage.may_try_again()):
            break
        [script] = _side_by_side([script.cell], stage)
    return script


class Script:
    """A cell that is being played."""

    def __init__(self, cell: Cell, stage: Stage) -> None:
        self.cell = cell
        self._stage = stage
        self._variables = stage.variables(cell.variables)
        self._said: list[str] = []
        self._several = len({line.by for line in cell.lines}) > 1
        self._came = self._must = ""
        self.failed = False

    def play(self, number: int) -> None:
        if self.failed or number >= len(self.cell.lines):
            return
        line = self.cell.lines[number]
        statement = self._stage.statement(line.sql, self._variables)
        self._say(line, statement)
        answer = self._answer(line, statement)
        self._stage.note(answer)
        if line.must is SAVED:
            if answer.row is None:
                self._fail(str(answer), "one row")
            else:
                self._variables.update(answer.row)
        elif line.must != ANY:
            must = self._variables[line.must[1:]] if line.must[:1] == ":" else line.must
            if answer.text != must:
                self._fail(str(answer), str(must))

    def _answer(self, line: Line, statement: str) -> Answer:
        session = self._stage.session(line.by)
        match line.kind:
            case Kind.ASK if line.by == "b":
                # While a's transaction is open: whoever must not wait may wait all the same.
                session.start(statement)
                return session.end()
            case Kind.ASK:
                return session.ask(statement)
            case Kind.UNTIL:
                return self._until(line, statement)
            case Kind.START:
                session.start(statement)
                return Answer(ANY)
            case Kind.END:
                return session.end()
            case Kind.HEAR:
                return self._hear(statement)

    def _until(self, line: Line, statement: str) -> Answer:
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._stage.session(line.by).ask(statement)
            if answer.text == line.must or time.monotonic() > end:
                return answer
            if line.by == "w" and (early := self._stage.session("b").answered) is not None:
                return Answer(f"no wait: session b was answered {early}")
            self._stage.session(line.by).ask("select pg_sleep(0.005)")

    def _hear(self, statement: str) -> Answer:
        self._stage.session("a").ask(statement)
        barrier, word = self._stage.barrier, str(self._variables["word"])
        heard = self._stage.session("l").hear(barrier, word)
        if heard is None:
            return Answer("silence: not even what was notified last")
        ours = {
            f"q{self._variables['key']}": WAKE,
            "q*": WAKE,
            f"c{self._variables.get('job')}": CANCEL,
        }
        found = {
            ours[payload]
            for channel, payload in heard
            if channel == self._variables["channel"] and payload in ours
        }
        return Answer(" and ".join(sorted(found)) or SILENCE)

    def _say(self, line: Line, statement: str) -> None:
        notes = [f"session {line.by}"] if self._several else []
        if line.kind is Kind.UNTIL:
            notes.append("again until t")
        elif line.kind is Kind.START:
            notes.append("waits")
        elif line.kind is Kind.HEAR:
            notes.append("what has session l heard before it?")
        if line.kind is not Kind.END:
            self._said.append(f"{statement};" + (f"  -- {', '.join(notes)}" if notes else ""))

    def _fail(self, came: str, must: str) -> None:
        self.failed = True
        self._came, self._must = came, must

    def result(self) -> Result:
        cell = self.cell
        return Result(
            matrix=cell.matrix,
            row=cell.row,
            column=cell.column,
            mark=Mark.FAIL if self.failed else Mark.PASS,
            promise=PROMISES[cell.promise],
            statements=self._said if self.failed else (),
            came=self._came,
            must=self._must,
        )
