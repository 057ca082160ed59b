// The summary of `moment-formats`: verdicts on the claims of [Fishman], from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/core/verdict.h"
#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/training.h"

namespace numsim::experiments::moment_formats {
namespace {

// A row of pairs.csv; `matches` and `fails` say whether the pair does, by the interval of its gap.
struct Row {
  MomentPair pair;
  std::string verdict, text;
  Answer matches = Answer::kUndecided, fails = Answer::kUndecided;

  bool Undecided() const { return matches == Answer::kUndecided && fails == Answer::kUndecided; }
};

std::string RowText(const Table& pairs, size_t r) {
  const auto number = [&](const char* column) { return pairs.Number(r, column); };
  if (number("diverged") > 0) {
    return fmt::format("{} / {}: {} of {} seeds diverged",
                       pairs.Text(r, "m"),
                       pairs.Text(r, "v"),
                       pairs.Text(r, "diverged"),
                       pairs.Text(r, "seeds"));
  }
  const std::string interval =
      std::isnan(number("gap_low"))
          ? " (one seed)"
          : fmt::format(" [{:.4f}, {:.4f}]", number("gap_low"), number("gap_high"));
  return fmt::format(
      "{} / {}: loss {:.4f}, gap {:.4f}{} ({:.2f} % of fp32's gain), {:.2g} % of v flushed",
      pairs.Text(r, "m"),
      pairs.Text(r, "v"),
      number("valid_loss"),
      number("gap"),
      interval,
      100 * number("gap_share"),
      100 * number("v_flushed"));
}

// Returns the mean over seeds of the loss that fp32 gained since the start.
double Gained(const Table& final_table) {
  SeedValues gained;
  for (size_t r = 0; r < final_table.rows.size(); ++r) {
    const MomentPair pair{final_table.Text(r, "m"), final_table.Text(r, "v")};
    if (pair != kBaseline) continue;
    gained[final_table.Text(r, "seed")] =
        final_table.Number(r, "start_loss") - final_table.Number(r, "valid_loss");
  }
  return OverSeeds(gained).value;
}

// A pair with a training that diverged fails. Other gaps are judged by their interval.
void Judge(const Table& pairs, size_t r, double gained, Row& row) {
  if (row.verdict == kNoVerdict) return;
  if (pairs.Number(r, "diverged") > 0) {
    row.matches = Answer::kNo;
    row.fails = Answer::kYes;
    return;
  }
  const Estimate share{pairs.Number(r, "gap_share"),
                       pairs.Number(r, "gap_low") / gained,
                       pairs.Number(r, "gap_high") / gained};
  row.matches = IsAtMost(share, kMatches, kFails);
  row.fails = IsAtLeast(share, kFails, kMatches);
}

std::vector<Row> RowsOf(const Table& pairs, double gained) {
  std::vector<Row> rows;
  for (size_t r = 0; r < pairs.rows.size(); ++r) {
    Row row{{pairs.Text(r, "m"), pairs.Text(r, "v")}, pairs.Text(r, "verdict"), RowText(pairs, r)};
    Judge(pairs, r, gained, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

// Returns true for the formats that count as E4M3: e4m3fn, and e4m3 (maximum 240, as in the
// authors' code).
bool IsE4m3(const std::string& storage) {
  const std::string format = FormatPart(storage);
  return format == "e4m3fn" || format == "e4m3";
}
bool IsE5m2(const std::string& storage) { return FormatPart(storage) == "e5m2"; }
bool IsFp8(const std::string& storage) { return IsE4m3(storage) || IsE5m2(storage); }
// Returns true for the paper's storage: one scale per tensor or none, rounded to nearest.
bool IsPapers(const std::string& storage) {
  return StoragePart(storage) == "@tensor" || StoragePart(storage).empty();
}
bool IsPapers(const MomentPair& pair) { return IsPapers(pair.m) && IsPapers(pair.v); }

std::string Lines(const std::vector<const Row*>& rows) {
  std::string text;
  for (const Row* row : rows) {
    text += "\n  " + row->text + ": " + row->verdict;
    if (row->verdict != kNoVerdict && row->Undecided()) text += ", undecided";
  }
  return text;
}

template <typename Which>
std::vector<const Row*> Select(const std::vector<Row>& rows, const Which& which) {
  std::vector<const Row*> found;
  for (const Row& row : rows) {
    if (which(row.pair)) found.push_back(&row);
  }
  return found;
}
// Selects only rows that could be compared with fp32.
template <typename Which>
std::vector<const Row*> SelectJudged(const std::vector<Row>& rows, const Which& which) {
  std::vector<const Row*> found = Select(rows, which);
  std::erase_if(found, [](const Row* row) { return row->verdict == kNoVerdict; });
  return found;
}

Tally TallyOf(const std::vector<const Row*>& rows, Answer Row::*answer) {
  Tally tally;
  for (const Row* row : rows) tally.Add(row->*answer);
  return tally;
}

// Returns on what the verdict of a claim about trainings rests.
std::string BasisOf(const Settings& settings, const Tally& tally) {
  std::string text = TrainingScaleText(settings);
  if (tally.Undecided() > 0) {
    text += fmt::format("; {}: {}",
                        tally.UndecidedText(),
                        settings.seeds < 2 ? "one seed gives no interval; use --seeds 3"
                                           : "intervals that exclude neither matching nor failing; "
                                             "use more --seeds");
  }
  return text;
}

Claim SecondMomentClaim(const Settings& settings, const std::vector<Row>& rows) {
  const auto found =
      SelectJudged(rows, [](const MomentPair& p) { return IsE4m3(p.v) && IsPapers(p); });
  const Tally failed = TallyOf(found, &Row::fails);
  return {
      "The second moment \"is able to converge only with E5M2 format\": v in E4M3 with one scale "
      "per tensor fails (Section 5.2, Figure 5).",
      fmt::format(
          "{} of {} pairs with v in E4M3 fail.{}", failed.Yes(), found.size(), Lines(found)),
      failed.Verdict(),
      BasisOf(settings, failed)};
}

bool IsPapersPair(const MomentPair& p) { return IsE4m3(p.m) && IsE5m2(p.v) && IsPapers(p); }

Claim PapersPairClaim(const Settings& settings, const std::vector<Row>& rows) {
  const auto found = SelectJudged(rows, IsPapersPair);
  const Tally matched = TallyOf(found, &Row::matches);
  return {
      "m in E4M3 with v in E5M2 converges to the baseline (Figure 5).",
      fmt::format("{} of {} such pairs match fp32.{}", matched.Yes(), found.size(), Lines(found)),
      matched.Verdict(),
      BasisOf(settings, matched)};
}

Claim OnlyPairClaim(const Settings& settings, const std::vector<Row>& rows) {
  const Tally papers = TallyOf(SelectJudged(rows, IsPapersPair), &Row::matches);
  const auto found = SelectJudged(rows, [](const MomentPair& p) {
    return IsFp8(p.m) && IsFp8(p.v) && IsPapers(p) && !IsPapersPair(p);
  });
  Tally behind;
  for (const Row* row : found) behind.Add(Opposite(row->matches));
  const bool papers_fails = papers.Verdict() == kDoesNotHold;
  Claim claim;
  claim.claim =
      "m E4M3 with v E5M2 is \"the only combination that is able to converge to baseline\" of the "
      "FP8 formats (Figure 5).";
  claim.measured = fmt::format("{} of {} other FP8 pairs do not match fp32{}.{}",
                               behind.Yes(),
                               found.size(),
                               papers_fails ? ", nor does the paper's pair" : "",
                               Lines(found));
  if (papers.Yes() > 0) {
    claim.verdict = behind.Verdict();
  } else {
    claim.verdict = papers.Verdict();  // not the only pair if it is none, and unknown otherwise
  }
  claim.basis = BasisOf(settings, papers.Yes() > 0 ? behind : papers);
  return claim;
}

constexpr int kPapersDevices = 8;

Claim MemoryClaim(const Table& memory) {
  std::string text;
  bool measured = false, papers_devices = false, others = false;
  for (size_t r = 0; r < memory.rows.size(); ++r) {
    const MomentPair pair{memory.Text(r, "m"), memory.Text(r, "v")};
    if (!IsPapersPair(pair) || memory.Text(r, "master") != "fp16") continue;
    if (FormatPart(pair.m) != "e4m3fn") continue;  // e4m3 takes the same bytes
    measured = true;
    const double saving = memory.Number(r, "saving");
    const bool about = saving >= 0.25 && saving <= 0.35;
    (memory.Number(r, "devices") == kPapersDevices ? papers_devices : others) |= about;
    text += fmt::format("\n  {} device{}: {:.1f} GB per device, {:.1f} % less",
                        memory.Text(r, "devices"),
                        memory.Text(r, "devices") == "1" ? "" : "s",
                        memory.Number(r, "gigabytes"),
                        100 * saving);
  }
  Claim claim;
  claim.claim =
      "FP8 moments with fp16 master weights take about 30 % less memory (Section 6.2, Table 4: 8 "
      "devices, ZeRO-1).";
  if (!measured) {
    claim.measured = "m in e4m3fn with v in e5m2 is not among the pairs.";
    claim.verdict = kNotMeasured;
    return claim;
  }
  claim.measured = fmt::format(
      "Computed from the bytes that are stored, not measured on devices: weights and gradients in "
      "bf16 on each device, moments and masters spread over the devices, activations not counted. "
      "Criterion: 25 to 35 % less on {} devices; it holds in part with that on another number of "
      "devices.{}",
      kPapersDevices,
      text);
  claim.verdict = papers_devices ? kHolds : others ? kHoldsInPart : kDoesNotHold;
  return claim;
}

std::string Notes(const Settings& settings, const Tables& tables, const std::vector<Row>& rows) {
  const Table& final_table = tables.at(std::string(kFinalTable));
  const auto others = Select(rows, [](const MomentPair& p) {
    return p != kBaseline && !(IsFp8(p.m) && IsFp8(p.v) && IsPapers(p)) &&
           !(IsE4m3(p.v) && IsPapers(p));
  });
  std::string text = fmt::format("Baseline: {}.", rows.front().text);
  if (!others.empty()) text += fmt::format("\nOther pairs:{}", Lines(others));
  const double bound = final_table.Number(0, "entropy_bound");
  if (!std::isnan(bound)) {
    text += fmt::format(
        "\nNo model's expected loss is below {:.4f} nats per byte on this generated text.", bound);
  }
  if (settings.seeds < 3) {
    text += fmt::format(
        "\n{} seed{}: gaps of less than a few hundredths of a nat cannot be told from noise "
        "(use --seeds 3 or more, or --preset small).",
        settings.seeds,
        settings.seeds == 1 ? "" : "s");
  }
  if (rows.front().verdict == kNoVerdict) {
    text += "\nfp32 itself diverged or gained nothing, so no pair is judged.";
  }
  const auto from = settings.options.find("update-from");
  if (from != settings.options.end()) {
    text +=
        from->second == "fresh"
            ? "\nUpdates are computed from the fresh moments, before they are stored, as in the "
              "authors' code: (1 - beta2) g^2 then takes the place of a v that was flushed. With "
              "--update-from stored they are computed from the moments as read back from storage, "
              "where nothing does."
            : "\nUpdates are computed from the moments as read back from storage, where a flushed "
              "v leaves only epsilon. The authors' code computes them from the fresh moments "
              "(--update-from fresh).";
  }
  return text +
         fmt::format(
             "\nmatches: gap at most {:g} % of what fp32 gained; fails: above {:g} %, or "
             "diverged. A verdict counts a pair that matches only if the interval of its gap "
             "excludes failing, and one that fails only if it excludes matching; other pairs "
             "are undecided.",
             100 * kMatches,
             100 * kFails);
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const std::vector<Row> rows =
      RowsOf(tables.at(std::string(kPairsTable)), Gained(tables.at(std::string(kFinalTable))));
  return {{SecondMomentClaim(settings, rows),
           PapersPairClaim(settings, rows),
           OnlyPairClaim(settings, rows),
           MemoryClaim(tables.at(std::string(kMemoryTable)))},
          Notes(settings, tables, rows)};
}

}  // namespace numsim::experiments::moment_formats
