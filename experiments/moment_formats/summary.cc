// The summary of `moment-formats`: verdicts on the claims of [Fishman], from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/moment_formats/moment_formats.h"

namespace numsim::experiments::moment_formats {
namespace {

constexpr const char* kHolds = "holds";
constexpr const char* kFailsVerdict = "does not hold";
constexpr const char* kPartly = "holds in part";
constexpr const char* kNotMeasured = "not measured";

// A row of pairs.csv.
struct Row {
  MomentPair pair;
  std::string verdict, text;
  double share;
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

std::vector<Row> RowsOf(const Table& pairs) {
  std::vector<Row> rows;
  for (size_t r = 0; r < pairs.rows.size(); ++r) {
    rows.push_back({{pairs.Text(r, "m"), pairs.Text(r, "v")},
                    pairs.Text(r, "verdict"),
                    RowText(pairs, r),
                    pairs.Number(r, "gap_share")});
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
  for (const Row* row : rows) text += "\n  " + row->text + ": " + row->verdict;
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

size_t CountOf(const std::vector<const Row*>& rows, const std::string& verdict) {
  return static_cast<size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const Row* row) { return row->verdict == verdict; }));
}

const char* AllOrSome(size_t yes, size_t all) {
  if (all == 0) return kNotMeasured;
  return yes == all ? kHolds : yes == 0 ? kFailsVerdict : kPartly;
}

Claim SecondMomentClaim(const std::vector<Row>& rows) {
  const auto found =
      SelectJudged(rows, [](const MomentPair& p) { return IsE4m3(p.v) && IsPapers(p); });
  const size_t failed = CountOf(found, "fails");
  return {
      "The second moment \"is able to converge only with E5M2 format\": v in E4M3 with one scale "
      "per tensor fails (Section 5.2, Figure 5).",
      fmt::format("{} of {} pairs with v in E4M3 fail.{}", failed, found.size(), Lines(found)),
      AllOrSome(failed, found.size())};
}

bool IsPapersPair(const MomentPair& p) { return IsE4m3(p.m) && IsE5m2(p.v) && IsPapers(p); }

Claim PapersPairClaim(const std::vector<Row>& rows) {
  const auto found = SelectJudged(rows, IsPapersPair);
  const size_t matched = CountOf(found, "matches");
  return {"m in E4M3 with v in E5M2 converges to the baseline (Figure 5).",
          fmt::format("{} of {} such pairs match fp32.{}", matched, found.size(), Lines(found)),
          AllOrSome(matched, found.size())};
}

Claim OnlyPairClaim(const std::vector<Row>& rows) {
  const auto papers = SelectJudged(rows, IsPapersPair);
  const auto found = SelectJudged(rows, [](const MomentPair& p) {
    return IsFp8(p.m) && IsFp8(p.v) && IsPapers(p) && !IsPapersPair(p);
  });
  const size_t matched = CountOf(papers, "matches");
  const size_t behind = found.size() - CountOf(found, "matches");
  Claim claim;
  claim.claim =
      "m E4M3 with v E5M2 is \"the only combination that is able to converge to baseline\" of the "
      "FP8 formats (Figure 5).";
  claim.measured = fmt::format("{} of {} other FP8 pairs do not match fp32{}.{}",
                               behind,
                               found.size(),
                               matched > 0 || papers.empty() ? "" : ", nor does the paper's pair",
                               Lines(found));
  claim.verdict = papers.empty() ? kNotMeasured
                  : matched == 0 ? kFailsVerdict
                                 : AllOrSome(behind, found.size());
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
  claim.verdict = papers_devices ? kHolds : others ? kPartly : kFailsVerdict;
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
  return text + fmt::format(
                    "\nmatches: gap at most {:g} % of what fp32 gained; fails: above {:g} %, or "
                    "diverged.",
                    100 * kMatches,
                    100 * kFails);
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const std::vector<Row> rows = RowsOf(tables.at(std::string(kPairsTable)));
  return {{SecondMomentClaim(rows),
           PapersPairClaim(rows),
           OnlyPairClaim(rows),
           MemoryClaim(tables.at(std::string(kMemoryTable)))},
          Notes(settings, tables, rows)};
}

}  // namespace numsim::experiments::moment_formats
