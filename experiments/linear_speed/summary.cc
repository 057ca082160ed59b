// The summary of `linear-speed`: verdicts on the claims of Appendix B of [SwitchBack] and a table
// of times. The published times are those of [SwitchBack-A100].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "experiments/core/verdict.h"
#include "experiments/linear_speed/linear_speed.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr double kPaperDim = 1024;  // the smallest of Figures 6 and 7

std::string Verdict(size_t measured, size_t holding) {
  Tally tally;
  for (size_t i = 0; i < measured; ++i) tally.Add(AnswerOf(i < holding));
  return tally.Verdict();
}

// Returns whether a time or a share of times is at most `limit`; undecided if it was not timed.
Answer IsTimedAtMost(double value, double limit) {
  return std::isfinite(value) ? AnswerOf(value <= limit) : Answer::kUndecided;
}

// The tables, and the layer that all claims are about.
struct View {
  const Table& operations;
  const Table& layers;
  std::vector<LayerKey> keys;
  LayerKey subject;
  std::vector<std::string> tokens;  // ascending

  View(const Settings& settings, const Tables& tables)
      : operations(tables.at(std::string(kOperationsTable))),
        layers(tables.at(std::string(kLayersTable))),
        keys(LayerKeys(layers)),
        subject(Subject(layers)),
        tokens(TokenTexts(settings)) {}

  std::string SubjectName() const { return subject.kind + " " + subject.format; }
  std::string StandardName() const {
    return fmt::format("standard {} ({})",
                       subject.high_precision,
                       subject.product == "library" ? subject.library : subject.product);
  }
  // Returns true if the subject is not standard and a standard layer to compare it with exists.
  bool Compared() const {
    const LayerKey standard = subject.Standard();
    return subject != standard && std::find(keys.begin(), keys.end(), standard) != keys.end();
  }
  // Returns the seconds of an operation at the greatest dim and number of tokens; 0 if the layer
  // does not have it.
  double Last(const LayerKey& key, std::string_view operation) const {
    const Curve curve = OperationCurve(operations, key, tokens.back(), operation);
    return curve.value.empty() ? 0 : curve.value.back();
  }
  double Last(const LayerKey& key, LinearOp step) const {
    return Last(key, numsim::ToString(step));
  }
};

std::string Percents(const Curve& curve, double factor) {
  std::string text;
  for (size_t i = 0; i < curve.dim.size(); ++i) {
    text +=
        fmt::format("{}{:.1f} at {:g}", i == 0 ? "" : ", ", factor * curve.value[i], curve.dim[i]);
  }
  return text;
}

Claim OperationsClaim(const View& view) {
  Claim claim;
  claim.claim =
      "int8 multiplies take just over half the time of standard fp16 ones, and quantise operations "
      "roughly an order of magnitude less time than a matmul (Appendix B, Figure 6 left).";
  if (!view.Compared()) {
    claim.measured = "No layer was timed together with standard.";
    claim.verdict = Verdict(0, 0);
    return claim;
  }
  const LayerKey standard = view.subject.Standard();
  const auto ratio = [&](LinearOp step) {
    return view.Last(view.subject, step) / view.Last(standard, step);
  };
  const double forward = ratio(LinearOp::kForwardProduct);
  const double input = ratio(LinearOp::kInputGradientProduct);
  double quantize = 0, products = 0;
  size_t operations = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    const LinearOp step = static_cast<LinearOp>(i);
    if (PartOf(step) == Part::kProduct) products += view.Last(standard, step) / 3;
    const double seconds = view.Last(view.subject, step);
    if (PartOf(step) != Part::kQuantize || seconds == 0) continue;
    quantize += seconds;
    ++operations;
  }
  quantize /= static_cast<double>(std::max<size_t>(operations, 1)) * products;
  claim.measured = fmt::format(
      "At the greatest dim and {} tokens, the forward GEMM of {} takes {:.2f} of the time of that "
      "of {}, the input gradient {:.2f}, including dequantisation (criterion: both at most 0.65); "
      "a quantise operation takes on average {:.3f} of the time of a standard GEMM (at most 0.2).",
      view.tokens.back(),
      view.SubjectName(),
      forward,
      view.StandardName(),
      input,
      quantize);
  Tally tally;
  tally.Add(IsTimedAtMost(std::isnan(forward + input) ? kNaN : std::max(forward, input), 0.65));
  tally.Add(IsTimedAtMost(operations > 0 ? quantize : kNaN, 0.2));
  claim.verdict = tally.Verdict();
  claim.basis = tally.UndecidedText();
  return claim;
}

Claim SavedClaim(const View& view) {
  Claim claim;
  claim.claim =
      "The speedup of SwitchBack over a standard fp16 layer ranges from 5 % to 35 % of its time "
      "(Appendix B, Figure 6 right; dim 1024 to 4096, A100).";
  size_t measured = 0, saving = 0;
  std::string text;
  for (const std::string& tokens : view.tokens) {
    const Curve curve = CurveOf(view.layers, view.subject, tokens, "saved_percent");
    for (size_t i = 0; view.Compared() && i < curve.dim.size(); ++i) {
      if (curve.dim[i] < kPaperDim) continue;
      if (std::isnan(curve.value[i])) continue;
      ++measured;
      saving += curve.value[i] >= 5;
    }
    text += fmt::format("\n  {} tokens: {}", tokens, Percents(curve, 1));
  }
  claim.measured = fmt::format(
      "Time that {} saves over {}, in percent at dim (criterion: at least 5 at dim >= {:g}):{}\n"
      "More than 35 is no contradiction on a processor whose int8 GEMMs gain more.",
      view.SubjectName(),
      view.StandardName(),
      kPaperDim,
      text);
  claim.verdict = Verdict(measured, saving);
  return claim;
}

Claim GrowthClaim(const View& view) {
  Claim claim;
  claim.claim =
      "The advantage of SwitchBack is greater for larger dim and batch size times sequence length "
      "(Appendix B, Figure 6 right).";
  size_t measured = 0, growing = 0;
  std::string text;
  const auto compare = [&](std::string_view what, double from, double to) {
    if (!view.Compared() || std::isnan(from) || std::isnan(to)) return;
    ++measured;
    growing += to > from;
    text += fmt::format("{} {}: {:.1f} to {:.1f} %", text.empty() ? "" : ";", what, from, to);
  };
  Curve least, most;
  for (const std::string& tokens : view.tokens) {
    const Curve curve = CurveOf(view.layers, view.subject, tokens, "saved_percent");
    if (tokens == view.tokens.front()) least = curve;
    most = curve;
    if (curve.dim.size() < 2) continue;
    compare(
        fmt::format("dim {:g} to {:g} at {} tokens", curve.dim.front(), curve.dim.back(), tokens),
        curve.value.front(),
        curve.value.back());
  }
  for (size_t i = 0; view.tokens.size() > 1 && i < most.dim.size(); ++i) {
    compare(
        fmt::format(
            "{} to {} tokens at dim {:g}", view.tokens.front(), view.tokens.back(), most.dim[i]),
        least.value[i],
        most.value[i]);
  }
  claim.measured =
      fmt::format("Time saved, from the smallest to the greatest (criterion: it grows):{}.",
                  text.empty() ? " one size only" : text);
  claim.verdict = Verdict(measured, growing);
  return claim;
}

Claim QuantizeClaim(const View& view) {
  Claim claim;
  claim.claim =
      "Quantise operations occupy at most 25 % of the time of a SwitchBack layer, around 10 % or "
      "below for large dim (Appendix B, Figure 7 left).";
  double most = 0, last = kNaN;
  std::string text;
  for (const std::string& tokens : view.tokens) {
    const Curve curve = CurveOf(view.layers, view.subject, tokens, "quantize_share");
    for (size_t i = 0; i < curve.dim.size(); ++i) {
      if (curve.dim[i] < kPaperDim) continue;
      most = std::max(most, curve.value[i]);
      last = curve.value[i];
    }
    text += fmt::format("\n  {} tokens: {}", tokens, Percents(curve, 100));
  }
  const bool measured = !std::isnan(last) && view.subject != view.subject.Standard();
  claim.measured = fmt::format(
      "Share in the time of {}, in percent at dim (criterion: at most 25 at dim >= {:g}, at most "
      "12 at the greatest dim and number of tokens):{}",
      view.SubjectName(),
      kPaperDim,
      text);
  claim.verdict = Verdict(measured ? 2 : 0, (most <= 0.25 ? 1u : 0u) + (last <= 0.12 ? 1u : 0u));
  return claim;
}

Claim LlmInt8Claim(const View& view) {
  Claim claim;
  claim.claim =
      "The kernels of LLM.int8() give no speedup over fp16 at this scale (Appendix B, Figures 7 "
      "and 8).";
  LayerKey key = view.subject;
  key.kind = "llm-int8";
  size_t measured = 0, slower = 0;
  std::string text;
  for (const std::string& tokens : view.tokens) {
    const Curve curve = CurveOf(view.layers, key, tokens, "saved_percent");
    for (const double saved : curve.value) {
      measured += !std::isnan(saved);
      slower += saved <= 0;
    }
    if (!curve.dim.empty()) text += fmt::format("\n  {} tokens: {}", tokens, Percents(curve, 1));
  }
  claim.measured = fmt::format(
      "Time that llm-int8 {} saves over {}, in percent at dim (criterion: none anywhere):{}\n"
      "The layer of that name here computes all three GEMMs in 8 bits and quantises like "
      "switchback-q; it has neither the outlier decomposition of LLM.int8() nor its kernels, and "
      "it is timed as a single layer, where the paper timed training.",
      key.format,
      view.StandardName(),
      text.empty() ? " not timed." : text);
  claim.verdict = Verdict(measured, slower);
  return claim;
}

// Returns the dim from which every timed dim saves time, as text.
std::string Crossing(const Curve& saved) {
  double from = kNaN;
  for (size_t i = saved.dim.size(); i-- > 0 && saved.value[i] > 0;) from = saved.dim[i];
  return std::isnan(from) ? "at no dim that was timed" : fmt::format("from dim {:g} on", from);
}

std::string CrossingNote(const View& view, const LayerKey& key) {
  const Curve saved = CurveOf(view.layers, key, view.tokens.back(), "saved_percent");
  const Curve speedup = CurveOf(view.layers, key, view.tokens.back(), "speedup");
  if (speedup.value.empty() || std::isnan(speedup.value.back())) return "";
  return fmt::format(
      "With {} tokens, {} is faster than {} {}; at dim {:g} it is {:.2f} times as fast.\n",
      view.tokens.back(),
      Label(key, view.keys),
      Label(key.Standard(), view.keys),
      Crossing(saved),
      speedup.dim.back(),
      speedup.value.back());
}

// Describes what the subject's time is spent on at the greatest size.
std::string RestNote(const View& view) {
  if (!view.Compared()) return "";
  double total = view.Last(view.subject, ToString(Part::kOther));
  double standard = view.Last(view.subject.Standard(), ToString(Part::kOther));
  std::vector<std::pair<double, std::string_view>> operations = {{total, "outside of operations"}};
  for (size_t i = 0; i < kSteps; ++i) {
    const LinearOp step = static_cast<LinearOp>(i);
    const double seconds = view.Last(view.subject, step);
    standard += view.Last(view.subject.Standard(), step);
    total += seconds;
    if (seconds > 0) operations.emplace_back(seconds, numsim::ToString(step));
  }
  std::sort(operations.begin(), operations.end(), std::greater<>());
  std::string text;
  for (const auto& [seconds, name] : operations) {
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name, 100 * seconds / total);
  }
  const double weight = view.Last(view.subject, LinearOp::kWeightGradientProduct);
  return fmt::format(
      "Where the time of {} goes at the greatest dim and {} tokens: {}. Its weight gradient alone "
      "takes {:.0f} % of the time of {}: if all else were free, the layer would be {:.2f} times "
      "as fast.\n",
      Label(view.subject, view.keys),
      view.tokens.back(),
      text,
      100 * weight / standard,
      Label(view.subject.Standard(), view.keys),
      standard / weight);
}

// Returns the table of times, shares and saved time as text.
std::string ShareTable(const Table& layers, std::span<const LayerKey> keys) {
  size_t width = 0;
  for (const LayerKey& key : keys) width = std::max(width, Label(key, keys).size());
  std::string text =
      fmt::format("  {:<{}} {:>6} {:>7} {:>10} {:>8} {:>8} {:>7} {:>5} {:>7} {:>8} {:>8}\n",
                  "layer",
                  width,
                  "dim",
                  "tokens",
                  "ms",
                  "GEMMs",
                  "quantise",
                  "convert",
                  "other",
                  "saved",
                  "speed-up",
                  "kept MB");
  const auto percent = [&](size_t r, std::string_view column) {
    return 100 * layers.Number(r, column);
  };
  for (size_t r = 0; r < layers.rows.size(); ++r) {
    text += fmt::format(
        "  {:<{}} {:>6} {:>7} {:>10.3f} {:>7.1f}% {:>7.1f}% {:>6.1f}% {:>4.1f}% {:>6.1f}% {:>8.2f} "
        "{:>8.2f}\n",
        Label(KeyOf(layers, r), keys),
        width,
        layers.Text(r, "dim"),
        layers.Text(r, "tokens"),
        1e3 * layers.Number(r, "seconds"),
        percent(r, "product_share"),
        percent(r, "quantize_share"),
        percent(r, "convert_share"),
        percent(r, "other_share"),
        layers.Number(r, "saved_percent"),
        layers.Number(r, "speedup"),
        1e-6 * layers.Number(r, "kept_bytes"));
  }
  return text;
}

std::string MachineNote(const LayerKey& key) {
  if (key.backend == "cuda") {
    return fmt::format(
        "Timed on {} by its own clock; library is {}; values are {}. The claims were made about an "
        "NVIDIA A100 with fp16 as the standard and the layers' operations in Triton.\n",
        key.device,
        key.library,
        key.high_precision);
  }
  return fmt::format(
      "Timed on {}, threads: {}, backend {}; library is {}. The claims were made about an NVIDIA "
      "A100 with fp16 as the standard and the layers' operations in Triton; a processor has a "
      "different balance of arithmetic and memory, and its standard is {}. The claims are tested "
      "under the accumulation mode, {}, under which the standard is fastest.\n"
      "The measurements that were published with the figures (bitsandbytes, info_a100_py2.jsonl) "
      "give 435.9 ms and 292.2 ms for standard and SwitchBack at dim 4096 and 131072 tokens, and "
      "26.9 and 22.1 ms at dim 1024; with 8192 tokens at dim 1024 SwitchBack was slower: 1.72 and "
      "1.91 ms.\n",
      key.device,
      key.threads,
      key.backend,
      key.library,
      key.high_precision,
      key.product);
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const View view(settings, tables);
  Summary summary;
  summary.claims = {OperationsClaim(view),
                    SavedClaim(view),
                    GrowthClaim(view),
                    QuantizeClaim(view),
                    LlmInt8Claim(view)};
  const std::vector<Claim> goals = Goals(view.layers);
  summary.claims.insert(summary.claims.end(), goals.begin(), goals.end());
  summary.notes = MachineNote(view.subject);
  for (const LayerKey& key : view.keys) {
    if (key.kind == view.subject.kind && key != key.Standard()) {
      summary.notes += CrossingNote(view, key);
    }
  }
  summary.notes += RestNote(view);
  summary.notes += CrossingNotes(tables.at(std::string(kCrossingsTable)));
  summary.notes +=
      "Time of the forward and the backward pass, mean of both layers, its shares, and the time "
      "saved over the standard layer of the same accumulation mode:\n" +
      ShareTable(view.layers, view.keys);
  return summary;
}

}  // namespace numsim::experiments::linear_speed
