// `numsim gemm`: the product of two matrices of codes under a accumulation mode.
#include <fmt/format.h>

#include "apps/command.h"
#include "apps/gemm_factor.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"

namespace numsim::apps {
namespace {

struct Options {
  std::string a, b, out, format, format_b, accumulate, scale_a, scale_b;
  bool transpose_a = false, transpose_b = false;
  size_t segment = 0;
};

bool IsInteger(const Format& format) { return format.spec.sign == Sign::kTwosComplement; }

AccumulationMode Rule(const Options& options, const Format& a, const Format& b) {
  if (!options.accumulate.empty()) return ParseAccumulationMode(options.accumulate);
  return ParseAccumulationMode(IsInteger(a) && IsInteger(b) ? "exact" : "fp32");
}

Array Product(const GemmFactor& a, const GemmFactor& b, const AccumulationMode& rule) {
  Array out;
  out.type = ElementType::kF32;
  out.shape = {a.rows(), b.rows()};
  const std::optional<size_t> elements = CheckedElements(out.shape, 32);
  if (!elements) {
    throw Error::Format("{} and {}: a product of shape {} is too large",
                        a.Description(),
                        b.Description(),
                        ShapeToString(out.shape));
  }
  out.bytes.resize(*elements * sizeof(float));
  Gemm(a.operand(), b.operand(), rule, std::span(out.Data<float>(), *elements));
  return out;
}

void ReadScales(const Options& options, GemmFactor& a, GemmFactor& b) {
  if (!options.scale_a.empty()) a.ReadScales(options.scale_a, options.segment);
  if (!options.scale_b.empty()) b.ReadScales(options.scale_b, options.segment);
  if (options.segment != 0 && !a.has_segments() && !b.has_segments()) {
    throw Error("--segment: neither --scale-a nor --scale-b has a scale for each segment");
  }
}

int RunGemm(const Options& options) {
  const Format format_a = ParseFormat(options.format);
  const Format format_b = options.format_b.empty() ? format_a : ParseFormat(options.format_b);
  const AccumulationMode rule = Rule(options, format_a, format_b);
  GemmFactor a(options.a, format_a, options.transpose_a);
  GemmFactor b(options.b, format_b, options.transpose_b);
  if (a.inner() != b.inner()) {
    throw Error::Format("{} and {}: the inner dimensions are {} and {}",
                        a.Description(),
                        b.Description(),
                        a.inner(),
                        b.inner());
  }
  ReadScales(options, a, b);
  WriteNpy(options.out, Product(a, b, rule));
  return 0;
}

void AddScaleOptions(CLI::App* sub, Options& options) {
  sub->add_option("--scale-a",
                  options.scale_a,
                  "Scales of A, a .npy file: one number, one for each row of the product, or rows "
                  "x segments with --segment")
      ->check(NotEmpty());
  sub->add_option("--scale-b", options.scale_b, "Scales of B, one for each column of the product")
      ->check(NotEmpty());
  sub->add_option("--segment",
                  options.segment,
                  "Elements along the inner dimension that share a scale; the segments' scaled "
                  "sums are added in float32, in order")
      ->check(CLI::Range(size_t{1}, size_t{1} << 40));
}

}  // namespace

void AddGemmCommand(Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "gemm", "Multiply matrices of codes, A times B transposed, under a rule of accumulation");
  sub->add_option("A", options->a, "rows x inner .npy: codes of --format, or float32 on its grid")
      ->required()
      ->check(NotEmpty());
  sub->add_option("B", options->b, "The same, of --format-b")->required()->check(NotEmpty());
  sub->add_option("OUT", options->out, "rows of A x rows of B float32 .npy")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--format", options->format, "Format of A: a name or a custom format")
      ->required();
  sub->add_option("--format-b", options->format_b, "Format of B (default: that of A)")
      ->check(NotEmpty());
  sub->add_option("--accumulate",
                  options->accumulate,
                  "How products are added up (default: exact for int8, else fp32): exact, fp64, "
                  "FORMAT, FORMAT:unfused, fp32-chunked:N, trunc:F,CHUNK[,PROMOTE], library, or a "
                  "device's rule of `numsim oracle accumulators`")
      ->check(NotEmpty());
  sub->add_flag("--transpose-a", options->transpose_a, "A is stored as inner x rows");
  sub->add_flag("--transpose-b", options->transpose_b, "B is stored as inner x rows");
  AddScaleOptions(sub, *options);
  Example(sub, "numsim gemm a.npy b.npy out.npy --format e4m3fn --accumulate hopper-fp8-fast");
  Choose(program, sub, [options] { return RunGemm(*options); });
}

}  // namespace numsim::apps
