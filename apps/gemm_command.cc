// `numsim gemm`: multiplies two matrices of codes in a given accumulation mode, and compares the
// product with a result from elsewhere.
#include <fmt/format.h>

#include <algorithm>

#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/gemm_compare.h"
#include "apps/gemm_factor.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"

namespace numsim::apps {
namespace {

struct GemmOptions {
  std::string a, b, out, format, format_b, accumulate, scale_a, scale_b, mine;
  std::string nan = "any";
  bool any_operands = false, transpose_a = false, transpose_b = false;
  size_t segment = 0;
};

bool IsInteger(const Format& format) { return format.spec.sign == Sign::kTwosComplement; }

// Returns the text of the accumulation mode: the user's, or the default.
std::string ModeText(const GemmOptions& options, const Format& a, const Format& b) {
  if (!options.accumulate.empty()) return options.accumulate;
  return IsInteger(a) && IsInteger(b) ? "exact" : "fp32";
}

AccumulationMode Rule(const std::string& text,
                      const GemmOptions& options,
                      const Format& a,
                      const Format& b) {
  const AccumulationMode rule = ParseAccumulationMode(text);
  if (!options.any_operands) CheckOperands(text, a.spec, b.spec, "--any-operands allows it");
  return rule;
}

Array Product(const GemmFactor& a, const GemmFactor& b, const AccumulationMode& rule) {
  Array out;
  out.type = ElementType::kF32;
  out.shape = {a.rows(), b.rows()};
  const std::optional<size_t> elements = CheckedElements(out.shape, 32);
  if (!elements) {
    throw Error::Format("{} and {}: a result of shape {} is too large",
                        a.Description(),
                        b.Description(),
                        ShapeToString(out.shape));
  }
  out.bytes.resize(*elements * sizeof(float));
  Gemm(a.operand(), b.operand(), rule, std::span(out.Data<float>(), *elements));
  return out;
}

void ReadScales(const GemmOptions& options, GemmFactor& a, GemmFactor& b) {
  if (!options.scale_a.empty()) a.ReadScales(options.scale_a, options.segment);
  if (!options.scale_b.empty()) b.ReadScales(options.scale_b, options.segment);
  if (options.segment != 0 && !a.has_segments() && !b.has_segments()) {
    throw Error("--segment: neither --scale-a nor --scale-b has one scale per segment");
  }
}

// Warns if the device adds up so many products in an order that nobody has compared with the mode.
void WarnOfLongSums(const std::string& mode, size_t products) {
  const AccumulationModeRow* const row = FindAccumulationMode(mode);
  if (row == nullptr || row->measured_inner == 0 || products <= row->measured_inner) return;
  fmt::print(stderr,
             "numsim: warning: {} was compared with the device for sums of up to {} products, and "
             "these have {}; it describes: {}\n",
             row->name,
             row->measured_inner,
             products,
             row->note);
}

// Returns one line on what was computed.
std::string SummaryText(const GemmFactor& a,
                        const GemmFactor& b,
                        const Format& format_a,
                        const Format& format_b,
                        const std::string& mode) {
  const std::string definition = DefinitionText(ParseAccumulationMode(mode));
  return fmt::format("{} x {} results of {} products, {} by {}, accumulation mode {}{}\n",
                     a.rows(),
                     b.rows(),
                     a.inner(),
                     format_a.name,
                     format_b.name,
                     mode,
                     definition == mode ? "" : " (" + definition + ")");
}

// Prints how the user's result differs from `product`. Returns the exit code: 1 if it differs.
int CompareWithMine(const GemmOptions& options, const Array& mine, const Array& product) {
  const MatrixDifference difference = Compare(mine, product, options.nan == "any");
  fmt::print("{}", DifferenceText(difference, mine, product));
  return difference.differing == 0 ? 0 : 1;
}

int RunGemm(const GemmOptions& options) {
  if (options.out.empty() && options.mine.empty()) {
    throw Error("OUT is missing; it may be left out only with --compare");
  }
  const Format format_a = ParseFormat(options.format);
  const Format format_b = options.format_b.empty() ? format_a : ParseFormat(options.format_b);
  const std::string mode = ModeText(options, format_a, format_b);
  const AccumulationMode rule = Rule(mode, options, format_a, format_b);
  GemmFactor a(options.a, format_a, options.transpose_a);
  GemmFactor b(options.b, format_b, options.transpose_b);
  if (a.inner() != b.inner()) {
    throw Error::Format("{} and {}: the inner dimensions differ: {} and {}",
                        a.Description(),
                        b.Description(),
                        a.inner(),
                        b.inner());
  }
  ReadScales(options, a, b);
  Array mine;
  if (!options.mine.empty()) mine = ReadMine(options.mine, {a.rows(), b.rows()});
  const Array product = Product(a, b, rule);
  if (!options.out.empty()) WriteNpy(options.out, product);
  const size_t products = options.segment == 0 ? a.inner() : std::min(options.segment, a.inner());
  WarnOfLongSums(mode, products);
  fmt::print("{}", SummaryText(a, b, format_a, format_b, mode));
  return options.mine.empty() ? 0 : CompareWithMine(options, mine, product);
}

void AddScaleOptions(CLI::App* sub, GemmOptions& options) {
  sub->add_option("--scale-a",
                  options.scale_a,
                  "Scales of A, a .npy file: one number, one number per row of A, or rows x "
                  "segments with --segment; `numsim cast --scales-out` writes them, by row, or by "
                  "column for an operand that is transposed here (default: no scales)")
      ->check(NotEmpty());
  sub->add_option("--scale-b",
                  options.scale_b,
                  "Scales of B, like --scale-a, with the rows of B (default: no scales)")
      ->check(NotEmpty());
  sub->add_option("--segment",
                  options.segment,
                  "Number of elements along the inner dimension that share a scale (default: all); "
                  "the scaled sums of the segments are added in float32, in order")
      ->check(CLI::Range(size_t{1}, size_t{1} << 40));
}

void AddCompareOptions(CLI::App* sub, GemmOptions& options) {
  CLI::Option* const compare =
      sub->add_option(
             "--compare",
             options.mine,
             "Compare the result bit for bit with this .npy file of the same shape: float32, "
             "or its bits as uint32; the exit code is 1 if an element differs")
          ->check(NotEmpty());
  sub->add_option("--nan",
                  options.nan,
                  "NaNs that --compare takes as equal: any (every NaN) or exact (the same bits)")
      ->check(CLI::IsMember({"any", "exact"}))
      ->needs(compare)
      ->capture_default_str();
}

}  // namespace

void AddGemmCommand(Program& program) {
  auto options = std::make_shared<GemmOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "gemm", "Multiply matrices of codes, A times B transposed, in a given accumulation mode");
  sub->add_option(
         "A", options->a, "Input .npy file, rows x inner: codes or float32 values of --format")
      ->required()
      ->check(NotEmpty());
  sub->add_option(
         "B", options->b, "Input .npy file, rows x inner: codes or float32 values of --format-b")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT",
                  options->out,
                  "Output .npy file: float32, rows of A x rows of B; optional with --compare")
      ->check(NotEmpty());
  sub->add_option("--format", options->format, FormatHelp("Format of A: a name or a custom format"))
      ->required();
  sub->add_option("--format-b", options->format_b, "Format of B (default: --format)")
      ->check(NotEmpty());
  sub->add_option("--accumulation-mode,--accumulate",
                  options->accumulate,
                  "Accumulation mode (default: exact for int8, else fp32): exact, fp64, FORMAT, "
                  "FORMAT:unfused, fp32-chunked:N, trunc:F,CHUNK[,PROMOTE], library, or a name of "
                  "`numsim oracle accumulation-modes`")
      ->check(NotEmpty());
  sub->add_flag("--any-operands",
                options->any_operands,
                "Allow an accumulation mode of a device that does not take these operands");
  sub->add_flag("--transpose-a", options->transpose_a, "A is stored as inner x rows");
  sub->add_flag("--transpose-b", options->transpose_b, "B is stored as inner x rows");
  AddScaleOptions(sub, *options);
  AddCompareOptions(sub, *options);
  Example(sub,
          "numsim gemm a.npy b.npy out.npy --format e4m3fn --accumulation-mode hopper-fp8-fast");
  Choose(program, sub, [options] { return RunGemm(*options); });
}

}  // namespace numsim::apps
