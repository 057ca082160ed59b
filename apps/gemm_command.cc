// `numsim gemm`: multiplies two matrices of codes in a given accumulation mode, and compares the
// product with a result from elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/gemm_compare.h"
#include "apps/gemm_factor.h"
#include "apps/gemm_split.h"
#include "apps/tensor_argument.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_names.h"
#include "numsim/gemm/epilogue.h"
#include "numsim/gemm/product_difference.h"
#include "numsim/io/array.h"

namespace numsim::apps {
namespace {

struct GemmOptions {
  std::string a, b, out, format, format_b, accumulate, scale_a, scale_b, mine;
  std::string granularity_a, granularity_b, tensor_scale_a, tensor_scale_b;
  std::string nan = "any";
  std::string epilogue = "float64", out_format;
  bool any_operands = false, transpose_a = false, transpose_b = false;
  size_t segment = 0;
  SplitOptions split;
};

bool IsInteger(const Format& format) { return format.spec.sign == Sign::kTwosComplement; }

// Returns the text of the accumulation mode: the user's, or the default.
std::string ModeText(const GemmOptions& options, const Format& a, const Format& b) {
  if (!options.accumulate.empty()) return options.accumulate;
  return IsInteger(a) && IsInteger(b) ? "exact" : "fp32";
}

AccumulationMode ParseMode(const std::string& text,
                           const GemmOptions& options,
                           const Format& a,
                           const Format& b) {
  const AccumulationMode mode = ParseAccumulationMode(text);
  if (!options.any_operands) CheckOperands(text, a.spec, b.spec, "--any-operands allows it");
  return mode;
}

// How sums become results.
struct Store {
  Epilogue epilogue = Epilogue::kFloat64;
  std::optional<Format> format;  // to which results are rounded; none: float32
  std::optional<SplitK> split;   // the parts whose sums make a sum; none: one sum
};

Store ParseStore(const GemmOptions& options, const FormatSpec& a, const FormatSpec& b) {
  Store store{ParseEpilogue(options.epilogue), std::nullopt, ParseSplit(options.split, a, b)};
  if (!options.out_format.empty()) store.format = ParseFormat(options.out_format);
  return store;
}

Array Product(const GemmFactor& a,
              const GemmFactor& b,
              const AccumulationMode& mode,
              const Store& store) {
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
  const std::span<float> results(out.Data<float>(), *elements);
  if (store.split) {
    Gemm(a.operand(), b.operand(), mode, *store.split, store.epilogue, results);
  } else {
    Gemm(a.operand(), b.operand(), mode, store.epilogue, results);
  }
  if (store.format) FakeQuantize(MakeEncodePlan(store.format->spec), results, results);
  return out;
}

void ReadScales(const GemmOptions& options, GemmFactor& a, GemmFactor& b) {
  a.ReadScales(options.segment);
  b.ReadScales(options.segment);
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
  const AccumulationModeRow* const row = FindAccumulationMode(mode);
  const bool reported = row != nullptr && !row->measured;
  return fmt::format("{} x {} results of {} products, {} by {}, accumulation mode {}{}{}\n",
                     a.rows(),
                     b.rows(),
                     a.inner(),
                     format_a.name,
                     format_b.name,
                     mode,
                     definition == mode ? "" : " (" + definition + ")",
                     reported ? fmt::format(", reported [{}]", row->source) : "");
}

std::string StoreText(const Store& store) {
  return fmt::format("--epilogue {}{}",
                     ToString(store.epilogue),
                     store.format ? " --out-format " + store.format->name : "");
}

// Returns one line on how sums become results. In block-scaled modes the epilogue's scales are those
// of the tensors.
std::string EpilogueText(const Store& store, const AccumulationMode& mode) {
  return fmt::format(
      "epilogue          {}: {}{}{}\n",
      ToString(store.epilogue),
      DefinitionText(store.epilogue),
      IsBlockScaled(mode) ? ", sa and sb of the tensors; others entered the sum" : "",
      store.format ? ", then rounded to " + store.format->name : "");
}

// Returns a line on the store under which more elements are equal, or "" if there is none that makes
// a difference worth mentioning.
std::string BetterStoreText(const GemmFactor& a,
                            const GemmFactor& b,
                            const AccumulationMode& mode,
                            const std::optional<SplitK>& split,
                            const Array& mine,
                            size_t equal) {
  constexpr double kMostProducts = 0x1p32;  // the product is computed anew for each store
  const double products = static_cast<double>(a.rows()) * static_cast<double>(b.rows()) *
                          static_cast<double>(std::max<size_t>(a.inner(), 1));
  if (products > kMostProducts || mine.Elements() == 0) return "";
  Store best;
  size_t most = 0;
  for (const Epilogue epilogue : {Epilogue::kFloat64,
                                  Epilogue::kFloat32Product,
                                  Epilogue::kFloat32LeftFirst,
                                  Epilogue::kFloat32RightFirst,
                                  Epilogue::kCublasLt}) {
    const Array product = Product(a, b, mode, {epilogue, std::nullopt, split});
    for (const char* const name : {"", "bf16", "fp16"}) {
      const Store store{
          epilogue, *name == '\0' ? std::nullopt : std::optional<Format>(ParseFormat(name)), split};
      Array stored = product;
      const std::span<float> results(stored.Data<float>(), stored.Elements());
      if (store.format) FakeQuantize(MakeEncodePlan(store.format->spec), results, results);
      const ProductDifference d =
          CompareProducts(results, {mine.Data<float>(), mine.Elements()}, b.rows(), true);
      if (d.elements - d.differing <= most) continue;
      most = d.elements - d.differing;
      best = store;
    }
  }
  if (most <= equal + mine.Elements() / 10) return "";
  return fmt::format(
      "{:<17} {}: {} of {} elements are equal\n", "better", StoreText(best), most, mine.Elements());
}

// Prints how the user's result differs from `product`. Returns the exit code: 1 if it differs.
int CompareWithMine(const GemmOptions& options,
                    const GemmFactor& a,
                    const GemmFactor& b,
                    const AccumulationMode& mode,
                    const std::optional<SplitK>& split,
                    const Array& mine,
                    const Array& product) {
  const std::span<const float> got(mine.Data<float>(), mine.Elements());
  const std::span<const float> expected(product.Data<float>(), product.Elements());
  const ProductDifference difference =
      CompareProducts(expected, got, std::max<size_t>(b.rows(), 1), options.nan == "any");
  Likeness likeness;
  if (difference.differing > 0) {
    likeness = ExplainDifference(a.operand(), b.operand(), expected, got);
  }
  fmt::print("{}", DifferenceText(difference, likeness, mine, product));
  if (difference.differing == 0) return 0;
  fmt::print("{}",
             BetterStoreText(a, b, mode, split, mine, difference.elements - difference.differing));
  return 1;
}

// Throws Error for a bad argument, before any file is read.
void CheckArguments(const GemmOptions& options) {
  if (!options.out.empty()) CheckTensorOutput("OUT", options.out, {options.a, options.b});
  for (const std::string& format : {options.format, options.format_b}) {
    if (!format.empty()) ParseFormat(format);
  }
  for (const std::string& granularity : {options.granularity_a, options.granularity_b}) {
    if (!granularity.empty()) ParseScaleLayout(granularity);
  }
  if (!options.accumulate.empty()) ParseAccumulationMode(options.accumulate);
  ParseStore(options, kFp32, kFp32);
}

// Returns the number of products that are added before their sum is scaled or added to another.
size_t ProductsOfASum(const GemmFactor& a, const GemmFactor& b, const Store& store) {
  size_t products = store.split ? PartOf(*store.split, a.inner(), 0).end : a.inner();
  for (const size_t segment : {a.operand().scales.segment, b.operand().scales.segment}) {
    if (segment != 0) products = std::min(products, segment);
  }
  return products;
}

// Returns the options with what words for formats with scales, such as "mxfp4", stand for: the elements,
// and the segment unless the user gives it or the granularity.
GemmOptions WithoutWords(GemmOptions options) {
  const bool free = options.segment == 0;
  for (std::string* const format : {&options.format, &options.format_b}) {
    const ScaledFormat* const word = FindScaledFormat(*format);
    if (word == nullptr) continue;
    const auto block = static_cast<size_t>(word->block);
    const bool has_scales = !options.scale_a.empty() || !options.scale_b.empty();
    const bool granular = !options.granularity_a.empty() || !options.granularity_b.empty();
    if (free && options.segment != 0 && options.segment != block) {
      throw Error::Format("--format-b {}: its blocks are not those of --format", *format);
    }
    if (free && has_scales && !granular) options.segment = block;
    *format = word->elements;
  }
  return options;
}

int RunGemm(const GemmOptions& given) {
  const GemmOptions options = WithoutWords(given);
  if (options.out.empty() && options.mine.empty()) {
    throw Error("OUT is missing; it may be left out only with --compare");
  }
  CheckArguments(options);
  GemmFactor a({options.a,
                options.format,
                options.scale_a,
                options.tensor_scale_a,
                options.granularity_a,
                options.transpose_a},
               "--format");
  GemmFactor b({options.b,
                options.format_b.empty() ? options.format : options.format_b,
                options.scale_b,
                options.tensor_scale_b,
                options.granularity_b,
                options.transpose_b},
               "--format-b");
  const Format& format_a = a.format();
  const Format& format_b = b.format();
  const std::string text = ModeText(options, format_a, format_b);
  const Store store = ParseStore(options, format_a.spec, format_b.spec);
  const AccumulationMode mode = ParseMode(text, options, format_a, format_b);
  if (a.inner() != b.inner()) {
    throw Error::Format("{} and {}: the inner dimensions differ: {} and {}",
                        a.Description(),
                        b.Description(),
                        a.inner(),
                        b.inner());
  }
  ReadScales(options, a, b);
  Array mine;
  if (!options.mine.empty()) mine = ReadMine(options.mine, {a.rows(), b.rows()}, store.format);
  const Array product = Product(a, b, mode, store);
  if (!options.out.empty()) {
    WriteTensor(options.out, {std::filesystem::path(options.out).stem().string(), product});
  }
  WarnOfLongSums(text, ProductsOfASum(a, b, store));
  fmt::print("{}{}", a.FoundScales(), b.FoundScales());
  fmt::print("{}", SummaryText(a, b, format_a, format_b, text));
  if (store.split) fmt::print("{}", SplitText(*store.split, a.inner()));
  if (a.has_scales() || b.has_scales() || store.format) {
    fmt::print("{}", EpilogueText(store, mode));
  }
  return options.mine.empty() ? 0
                              : CompareWithMine(options, a, b, mode, store.split, mine, product);
}

void AddScaleOptions(CLI::App* sub, GemmOptions& options) {
  sub->add_option("--scale-a",
                  options.scale_a,
                  "Scales of A, a file or FILE.safetensors:NAME: one number, one number per row of "
                  "A, rows x segments with --segment, or those of --granularity-a; `numsim cast "
                  "--scales-out` writes them (default: the tensor NAME_scale or NAME_scale_inv "
                  "beside a tensor NAME of a .safetensors file, else no scales)")
      ->check(NotEmpty());
  sub->add_option("--scale-b",
                  options.scale_b,
                  "Scales of B, like --scale-a, with the rows of B (default: no scales)")
      ->check(NotEmpty());
  sub->add_option(
         "--granularity-a",
         options.granularity_a,
         "Elements of A, as it is stored, that share a scale: tensor, row, column, block:N "
         "or tile:ROWSxCOLS, as `numsim cast --granularity` (default: from the shape of the "
         "scales)")
      ->check(NotEmpty());
  sub->add_option("--granularity-b", options.granularity_b, "The same for B")->check(NotEmpty());
  sub->add_option("--segment",
                  options.segment,
                  "Number of elements along the inner dimension that share a scale (default: all); "
                  "the scaled sums of the segments are added in float32, in order, or, under "
                  "mxf8f6f4, mxf4 and mxf4nvf4, the scales enter the sum")
      ->check(CLI::Range(size_t{1}, size_t{1} << 40));
  sub->add_option(
         "--tensor-scale-a",
         options.tensor_scale_a,
         "A file or FILE.safetensors:NAME with one number that multiplies every scale of A, "
         "as in NVFP4 (default: 1)")
      ->check(NotEmpty());
  sub->add_option("--tensor-scale-b", options.tensor_scale_b, "The same for B")->check(NotEmpty());
}

void AddStoreOptions(CLI::App* sub, GemmOptions& options) {
  sub->add_option("--epilogue",
                  options.epilogue,
                  "How a sum S is scaled: float64 (numsim's own, fl32(fl64(S * (sa * sb)))), "
                  "float32:ab (S * (sa * sb) in float32), float32:a,b ((S * sa) * sb), "
                  "float32:b,a ((S * sb) * sa), or cublaslt, as on an H200: float32:ab and + 0 "
                  "with one scale per operand, else float32:b,a")
      ->capture_default_str();
  sub->add_option("--out-format",
                  options.out_format,
                  "Round the results to this format after scaling, once, to nearest even; OUT "
                  "remains float32 (default: float32)")
      ->check(NotEmpty());
}

void AddCompareOptions(CLI::App* sub, GemmOptions& options) {
  CLI::Option* const compare =
      sub->add_option(
             "--compare",
             options.mine,
             "Compare the result bit for bit with this .npy file of the same shape: float32, its "
             "bits as uint32, or codes of --out-format; the exit code is 1 if an element differs")
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
         "A",
         options->a,
         "Input .npy or .safetensors file, or FILE.safetensors:NAME, rows x inner: codes or float32 "
         "values of --format")
      ->required()
      ->check(NotEmpty());
  sub->add_option(
         "B", options->b, "Input file, as A, rows x inner: codes or float32 values of --format-b")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT",
                  options->out,
                  "Output .npy or .safetensors file: float32, rows of A x rows of B; optional with "
                  "--compare")
      ->check(NotEmpty());
  sub->add_option("--format",
                  options->format,
                  FormatHelp("Format of A: a name or a custom format (default: that of the element "
                             "type, where it tells one)"))
      ->check(NotEmpty());
  sub->add_option("--format-b",
                  options->format_b,
                  "Format of B (default: --format, else that of the element type)")
      ->check(NotEmpty());
  sub->add_option("--accumulation-mode,--accumulate",
                  options->accumulate,
                  "Accumulation mode (default: exact for int8, else fp32): exact, fp64, FORMAT, "
                  "FORMAT:unfused, fp32-chunked:N, trunc:F,CHUNK[,PROMOTE], library, or a name of "
                  "`numsim oracle accumulation-modes`, such as mxf8f6f4")
      ->check(NotEmpty());
  sub->add_flag("--any-operands",
                options->any_operands,
                "Allow an accumulation mode of a device that does not take these operands");
  sub->add_flag("--transpose-a", options->transpose_a, "A is stored as inner x rows");
  sub->add_flag("--transpose-b", options->transpose_b, "B is stored as inner x rows");
  AddScaleOptions(sub, *options);
  AddSplitOptions(sub, options->split);
  AddStoreOptions(sub, *options);
  AddCompareOptions(sub, *options);
  Example(
      sub,
      "numsim gemm a.npy b.npy out.npy --format e4m3fn --accumulation-mode hopper-fp8-fast\n"
      "  numsim gemm x.npy model.safetensors:up.weight out.npy --format bf16 --format-b e4m3fn");
  Choose(program, sub, [options] { return RunGemm(*options); });
}

}  // namespace numsim::apps
