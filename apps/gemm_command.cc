// `numsim gemm`: multiplies two matrices of codes in a given accumulation mode.
#include <fmt/format.h>

#include "apps/command.h"
#include "apps/gemm_factor.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"

namespace numsim::apps {
namespace {

struct GemmOptions {
  std::string a, b, out, format, format_b, accumulate, scale_a, scale_b;
  bool transpose_a = false, transpose_b = false;
  size_t segment = 0;
};

bool IsInteger(const Format& format) { return format.spec.sign == Sign::kTwosComplement; }

AccumulationMode Rule(const GemmOptions& options, const Format& a, const Format& b) {
  if (!options.accumulate.empty()) return ParseAccumulationMode(options.accumulate);
  return ParseAccumulationMode(IsInteger(a) && IsInteger(b) ? "exact" : "fp32");
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

int RunGemm(const GemmOptions& options) {
  const Format format_a = ParseFormat(options.format);
  const Format format_b = options.format_b.empty() ? format_a : ParseFormat(options.format_b);
  const AccumulationMode rule = Rule(options, format_a, format_b);
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
  WriteNpy(options.out, Product(a, b, rule));
  return 0;
}

void AddScaleOptions(CLI::App* sub, GemmOptions& options) {
  sub->add_option("--scale-a",
                  options.scale_a,
                  "Scales of A, a .npy file: one number, one number per row of A, or rows x "
                  "segments with --segment (default: no scales)")
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
  sub->add_option("OUT", options->out, "Output .npy file: float32, rows of A x rows of B")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--format", options->format, "Format of A: a name or a custom format")
      ->required();
  sub->add_option("--format-b", options->format_b, "Format of B (default: --format)")
      ->check(NotEmpty());
  sub->add_option("--accumulation-mode,--accumulate",
                  options->accumulate,
                  "Accumulation mode (default: exact for int8, else fp32): exact, fp64, FORMAT, "
                  "FORMAT:unfused, fp32-chunked:N, trunc:F,CHUNK[,PROMOTE], library, or a name of "
                  "`numsim oracle accumulation-modes`")
      ->check(NotEmpty());
  sub->add_flag("--transpose-a", options->transpose_a, "A is stored as inner x rows");
  sub->add_flag("--transpose-b", options->transpose_b, "B is stored as inner x rows");
  AddScaleOptions(sub, *options);
  Example(sub,
          "numsim gemm a.npy b.npy out.npy --format e4m3fn --accumulation-mode hopper-fp8-fast");
  Choose(program, sub, [options] { return RunGemm(*options); });
}

}  // namespace numsim::apps
