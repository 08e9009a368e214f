"""Random mechanical systems against CasADi and DOP853: verdicts on accuracy and conservation agree with the truth.

A run that is called resolved but is more than ten times off, and a run that is called conserved but is not, are faults.
So are more than one in a hundred right runs that are called unresolved.
"""

from __future__ import annotations

from random_systems import judge
from torture.findings import Findings

#: Largest fraction of right runs that may be called unresolved, and number of runs below which it is not checked.
FRACTION, ENOUGH = 0.01, 200


def run(seed: int, first: int, count: int) -> Findings:
    findings = Findings()
    unresolved = []
    for number in range(first, first + count):
        judged = judge(f"{seed} {number}")
        findings.counts["random systems"] += 1
        findings.measure("true error by estimate", judged.ratio)
        if judged.outcome in ("too optimistic", "not conserved, but called so", "other impacts, but resolved"):
            findings.fault(number, f"{judged.outcome}: {judged.detail}")
        elif judged.outcome == "called unresolved, but right":
            unresolved.append(judged.detail)
            findings.counts[judged.outcome] += 1
        else:
            name = "verdicts that agree" if judged.outcome == "agrees" else judged.outcome
            findings.counts[name] += 1
    if count >= ENOUGH and len(unresolved) > FRACTION * findings.counts["verdicts that agree"]:
        findings.fault(f"{first} to {first + count}", f"right, but called unresolved: {unresolved}"[:2000])
    return findings
