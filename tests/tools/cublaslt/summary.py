"""The summary of a study of cuBLASLt's plans."""

from collections import Counter

from cublaslt.library import FIELD_NAMES
from cublaslt.products import KINDS
from cublaslt.tables import CASE


def plan_lines(tables, notes):
    if "plan-calls" in notes:
        each = notes["plan-seconds"] / notes["plan-calls"] * 1e6
        yield f"{notes['plan-calls']} calls of the heuristic in {notes['plan-seconds']} s, {each:.1f} us each"
    for text, count in notes.get("refusals", {}).items():
        yield f"{count} calls of the heuristic without a plan: {text}"
    yield f"{len(tables.plans.rows)} shapes, {len(tables.algorithms.rows)} algorithms"
    algorithms = {row[0]: dict(zip(FIELD_NAMES, map(int, row[1:]))) for row in tables.algorithms.rows}
    header = tables.plans.columns[3:]
    for at, name in enumerate(header):
        planned, split, largest, shortest, counts = 0, 0, 0, 0, Counter()
        for row in tables.plans.rows:
            cell = row[3 + at] if row[3 + at] != "=" else row[2 + at]
            if cell == "-":
                continue
            planned += 1
            parts = algorithms[cell.split(" ")[0]]["split"]
            if parts > 1:
                m, n, k = map(int, row[:3])
                split, largest = split + 1, max(largest, m * n)
                shortest = min(shortest or k, k)
                counts[parts] += 1
        parts = " ".join(f"{s}:{count}" for s, count in sorted(counts.items()))
        yield f"  {name:22} {planned:6} planned {split:6} split, M N <= {largest}, K >= {shortest}, S {parts or 'none'}"


def group_of(row):
    if row["forced"] != "0":
        return "forced"
    return "split" if int(row["split"]) > 1 else "unsplit"


def replay_lines(tables):
    rows = tables.replays.records()
    yield f"{len(rows)} products replayed, {sum(int(r['elements']) for r in rows)} results compared"
    stored = {tuple(row[: len(CASE)]): dict(zip(tables.products.columns, row)) for row in tables.products.rows}
    for kind in KINDS.values():
        for group in ("unsplit", "split", "forced"):
            of_kind = [r for r in rows if r["kind"] == kind.name and group_of(r) == group]
            if not of_kind:
                continue
            exact = [r for r in of_kind if r["differing"] == "0"]
            own = [r for r in exact if r["mode"] in (kind.mode, "exact")]
            beside = [stored[tuple(r[x] for x in CASE)] for r in of_kind]
            torch = Counter("refused" if x["torch-differs"] == "refused" else x["torch-differs"] == "0" for x in beside)
            yield (
                f"  {kind.name:15} {group:8} {len(exact)} of {len(of_kind)} fit a hypothesis,"
                f" {len(own)} in the kind's mode; not repeatable {sum(x['unsteady'] != '0' for x in beside)};"
                f" equal to PyTorch {torch[True]}, not {torch[False]}, refused {torch['refused']}"
            )
            fits = Counter()
            for r in own:
                for text in r["fitting"].split("|"):
                    names, _, way = text.partition(" ")
                    fits.update(f"{name} {way}".strip() for name in names.split("="))
            most = max(fits.values(), default=0)
            shown = [text for text, count in fits.most_common() if count == most][:12] if group != "unsplit" else []
            for text in shown or [text for text, _ in fits.most_common(2)]:
                yield f"      {fits[text]:4}  {text}"
            for r in [r for r in of_kind if r["differing"] != "0"][:5]:
                config = stored[tuple(r[x] for x in CASE)]
                yield (
                    f"      no: {r['M']} x {r['N']} x {r['K']} S {r['split']} ({r['forced']}) algorithm {config['id']}"
                    f" stages {config['stages']} option {config['custom']}: {r['differing']} of {r['elements']} differ"
                    f" under {r['mode']} {r['best']}"
                )


def tail_lines(tables):
    outcomes = Counter(r["missing"] for r in tables.tails.records())
    rows = [r for r in tables.tails.records() if r["missing"] not in ("refused", "failed")]
    yield f"{len(rows)} products with tails, {outcomes['refused']} plans refused, {outcomes['failed']} failed"
    for kind in KINDS:
        for origin in ("heuristic", "forced"):
            of_kind = [r for r in rows if r["kind"] == kind and r["origin"] == origin]
            split = [r for r in of_kind if int(r["split"]) > 1]
            lost = [r for r in of_kind if float(r["missing"]) or float(r["missing-rest"] or 0)]
            wrong = [r for r in of_kind if tail_surprises(r)]
            torch = sum(float(r["torch-missing"] or 0) > 0 for r in of_kind)
            yield (
                f"  {kind:15} {origin:9} {len(of_kind)} run, {len(split)} split, {len(lost)} lose products,"
                f" {len(wrong)} not as predicted; PyTorch loses in {torch}"
            )
            for r in (wrong[:3] or lost[:3]):
                yield (
                    f"      {r['M']} x {r['N']} x {r['K']} S {r['split']} algorithm {r['id']} stages {r['stages']}:"
                    f" {r['missing']} missing ({r['missing-rest'] or 0} elsewhere), predicted {r['predicted']}"
                )
    scanned = tables.scan.records()
    for kind in KINDS:
        of_kind = [r for r in scanned if r["kind"] == kind]
        total = {x: sum(int(r[x]) for r in of_kind) for x in ("sums", "planned", "split", "loses")}
        largest = max((int(r["largest"]) for r in of_kind), default=1)
        yield (
            f"  scan {kind:15} {total['planned']} of {total['sums']} planned, {total['split']} split (S <= {largest}),"
            f" {total['loses']} predicted to lose products"
        )


def tail_surprises(row):
    """Whether a product of `tails` lost other products than predicted, as far as its rows show them."""
    granule, m = KINDS[row["kind"]].granule, int(row["M"])
    shown = min(int(row["predicted"]), granule * max(1, m - 1))
    return float(row["missing"]) != shown


def summary(tables, environment, notes):
    lines = ["  ".join(f"{name} {value}" for name, value in environment.items())]
    for part in (plan_lines(tables, notes), replay_lines(tables), tail_lines(tables)):
        lines += ["", *part]
    return "\n".join(lines) + "\n"
