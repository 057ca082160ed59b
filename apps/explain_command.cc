// `numsim explain gemm`: how a library was recorded to compute a product, and the command that gives
// the same bits.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "apps/command.h"
#include "apps/format_text.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/recorded_plan.h"
#include "numsim/gemm/split_k.h"

namespace numsim::apps {
namespace {

struct ExplainOptions {
  std::string shape, format, out, card = "h200", workspace = "32MiB";
  bool fast = false;
  size_t parts = 0;  // of the user's library; 0: the recorded number
};

// Parses "MxNxK".
ProductShape ParseShape(const std::string& text) {
  ProductShape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool valid = true;
  for (size_t* const number : {&shape.m, &shape.n, &shape.k}) {
    const auto [next, failure] = std::from_chars(at, end, *number);
    const bool last = number == &shape.k;
    valid = valid && failure == std::errc() && *number != 0 && *number <= size_t{1} << 40 &&
            (last ? next == end : next != end && *next == 'x');
    if (!valid) break;
    at = last ? next : next + 1;
  }
  if (!valid) {
    throw Error::Format(
        "--shape: expected MxNxK of positive numbers, such as 1x16x11528, found '{}'", text);
  }
  return shape;
}

RecordedPlans ParsePlans(const ExplainOptions& options) {
  RecordedPlans plans{.operands = ParseFormat(options.format).spec,
                      .results = {},
                      .fast_accumulation = options.fast,
                      .workspace_mib = options.workspace == "1MiB" ? size_t{1} : size_t{32}};
  const bool fp8 = plans.operands.Bits() == 8;
  const std::string own = fp8 ? "bf16" : ToString(plans.operands);
  plans.results = ParseFormat(options.out.empty() ? own : options.out).spec;
  CheckRecorded(plans);
  return plans;
}

std::string ShapeText(const ProductShape& shape) {
  return fmt::format("{} x {} x {}", shape.m, shape.n, shape.k);
}

std::string PartsText(size_t parts) {
  return parts == 1 ? "one sum" : fmt::format("{} parts", parts);
}

// Returns the lines on a shape without a recorded plan.
std::string NearestText(const RecordedPlans& plans, const ProductShape& shape) {
  std::string text =
      "plan              not recorded for this shape; the nearest shapes with a recorded plan:\n";
  for (const RecordedShape& near : NearestRecorded(plans, shape, 4)) {
    text += fmt::format("{:18}{}: {}\n", "", ShapeText(near.shape), PartsText(near.parts));
  }
  return text + "                  --splits takes the number of parts that your library plans\n";
}

std::string LostText(const SplitK& split, size_t inner) {
  const size_t lost = ProductsLeftOut(split, inner);
  if (lost == 0) return "no product";
  // A multiple of the k-tile loses products only with more parts than the tile has products.
  const size_t padded = (inner + split.tile - 1) / split.tile * split.tile;
  return fmt::format(
      "the last {} of {} products: they are in no part. Zeros at the end of K, up to {}, keep them",
      lost,
      inner,
      padded);
}

// Returns the lines on how a product of `parts` parts is computed.
std::string SumText(const RecordedPlans& plans, const ProductShape& shape, size_t parts) {
  const std::string_view mode = AccumulationModeOf(plans);
  const std::string format = ToString(plans.operands), out = ToString(plans.results);
  const SplitK split{.parts = parts,
                     .tile = CublasLtTile(plans.operands, plans.operands),
                     .partition = SplitPartition::kCublasLt};
  std::string text = fmt::format("sum               one sum under {}\n", mode);
  if (parts > 1) {
    text = fmt::format(
        "sum               parts of {} products, each under {} from zero; added in float32, in order\n",
        PartOf(split, shape.k, 0).end,
        mode);
  }
  text += fmt::format("lost              {}\n", LostText(split, shape.k));
  text += fmt::format("result            epilogue cublaslt{}\n",
                      out == "fp32" ? "" : ", then rounded once to " + out);
  return text +
         fmt::format(
             "command           numsim gemm A.npy B.npy OUT.npy --format {} "
             "--accumulation-mode {} --epilogue cublaslt{}{}\n",
             format,
             mode,
             out == "fp32" ? "" : " --out-format " + out,
             parts == 1 ? "" : fmt::format(" --split-k {} --split-partition cublaslt", parts));
}

int RunExplainGemm(const ExplainOptions& options) {
  const ProductShape shape = ParseShape(options.shape);
  const RecordedPlans plans = ParsePlans(options);
  const std::string format = ToString(plans.operands);
  std::string text = fmt::format(
      "product           {} x {} results of {} products, {} by {} to {}{}; A and B row-major\n"
      "library           cuBLASLt 13.1.0 on an NVIDIA H200, workspace {}\n",
      shape.m,
      shape.n,
      shape.k,
      format,
      format,
      ToString(plans.results),
      plans.fast_accumulation ? ", fast accumulation" : "",
      options.workspace);
  std::optional<size_t> parts = RecordedParts(plans, shape);
  if (options.parts != 0) {
    parts = options.parts;
    text += fmt::format("plan              given: {}\n", PartsText(*parts));
  } else if (parts) {
    text += fmt::format("plan              measured: algorithm 66, k-tiles of {}, {}\n",
                        CublasLtTile(plans.operands, plans.operands),
                        PartsText(*parts));
  } else {
    text += NearestText(plans, shape);
  }
  if (parts) text += SumText(plans, shape, *parts);
  fmt::print("{}", text);
  return 0;
}

void AddExplainGemmCommand(Program& program, CLI::App* explain) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* sub = explain->add_subcommand(
      "gemm",
      "Say how cuBLASLt was recorded to split a product A B^T of row-major A (M x K) and B (N x K), "
      "which products it loses, and the `numsim gemm` that gives its bits");
  sub->add_option("--shape", options->shape, "MxNxK: M x N results, sums of K products")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--format", options->format, "Format of both operands: e4m3fn, bf16 or fp16")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--out",
                  options->out,
                  "Format of the results: fp32, or bf16 for e4m3fn and bf16, fp16 for fp16 "
                  "(default: the 16-bit one)")
      ->check(NotEmpty());
  sub->add_flag("--fast", options->fast, "Fast accumulation, for e4m3fn");
  sub->add_option("--card", options->card, "Card whose plans are recorded")
      ->check(CLI::IsMember({"h200"}))
      ->capture_default_str();
  sub->add_option("--workspace",
                  options->workspace,
                  "Memory that the library may use; PyTorch 2.11 gives torch._scaled_mm 1MiB and "
                  "torch.mm 32MiB")
      ->check(CLI::IsMember({"1MiB", "32MiB"}))
      ->capture_default_str();
  sub->add_option("--splits",
                  options->parts,
                  "Number of parts that your library plans, in place of the recorded one")
      ->check(CLI::Range(size_t{1}, SplitK::kMost));
  Example(sub, "numsim explain gemm --shape 1x16x11528 --format bf16");
  Choose(program, sub, [options] { return RunExplainGemm(*options); });
}

}  // namespace

void AddExplainCommand(Program& program) {
  CLI::App* explain = program.app.add_subcommand(
      "explain",
      "Say how a library was recorded to compute something, and how numsim does the same");
  explain->fallthrough();
  Example(explain, "numsim explain gemm --shape 1x16x11528 --format bf16");
  AddExplainGemmCommand(program, explain);
}

}  // namespace numsim::apps
