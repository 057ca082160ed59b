// `numsim stats`: measures the quantisation error of the tensors in a file.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/rounding_options.h"
#include "apps/stats_against.h"
#include "apps/stats_fold.h"
#include "apps/stats_table.h"
#include "numsim/base/printable.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/csv.h"
#include "numsim/io/table_file.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {
namespace {

struct StatsOptions {
  std::string file;
  std::string formats = "e4m3fn,e5m2,bf16,int8";
  std::string granularity = "tensor";
  std::string sort = "file";
  std::string scale = "usual";
  std::string fold = "auto";
  std::string from, against, scales;
  bool given_granularity = false;  // the user's, not the default
  std::string tensor;
  std::string csv;
  RoundingOptions rounding;
};

std::vector<ScaleLayout> ParseLayouts(const std::string& list) {
  std::vector<ScaleLayout> layouts;
  for (const std::string& text : SplitList(list)) layouts.push_back(ParseScaleLayout(text));
  return layouts;
}

// The formats, layouts and other choices of a run.
struct Task {
  std::vector<Format> formats;
  std::vector<const ScaledFormat*> words;  // formats with scales of their own
  std::vector<ScaleLayout> layouts;
  QuantizeOptions quantize;
  bool usual = false;  // the scale rule of each format
  Fold fold = Fold::kAuto;
  std::optional<Format> from;  // of codes whose type does not name their format
};

// Adds the rows of one tensor, whose elements are `values`: for each granularity, a row per format, and
// a row per word for a format with scales.
template <typename Value>
void AddRows(Table& table,
             const TensorInfo& tensor,
             const Array& array,
             const std::vector<Value>& values,
             const Task& task) {
  const MatrixStack stack = FoldShape(array.shape, task.fold);
  QuantizeOptions quantize = task.quantize;
  const auto add = [&](const std::string& format) {
    AddMeasuredRow(table,
                   {tensor.name,
                    std::string(ToString(array.type)),
                    array.shape,
                    stack,
                    format,
                    ToString(quantize.layout),
                    std::string(ToString(quantize.scale_rule))},
                   MeasuresOf(StackError(std::span(values), stack, quantize)));
  };
  for (const ScaleLayout& layout : task.layouts) {
    quantize.layout = layout;
    for (const Format& format : task.formats) {
      quantize.format = format.spec;
      if (task.usual) quantize.scale_rule = UsualScaleRule(format.spec);
      add(format.name);
    }
  }
  for (const ScaledFormat* const word : task.words) {
    quantize.format = ParseFormat(word->elements).spec;
    quantize.layout = {.granularity = Granularity::kBlock,
                       .block = static_cast<size_t>(word->block)};
    quantize.scale_rule = ParseScaleRule(word->rule);
    add(std::string(word->name));
  }
}

// Returns why the tensor cannot be measured, "" if it can.
std::string WhyUnmeasured(const TensorInfo& tensor, const std::optional<Format>& from) {
  if (!tensor.type) return "a dtype that numsim does not read";
  const std::string reason(WhyNoNumbers(*tensor.type));
  if (reason.empty()) return "";
  const bool codes = CanHoldCodes(*tensor.type);
  if (codes && from && CanBeCodes(*tensor.type, from->spec)) return "";
  if (codes && from) {
    return fmt::format("codes of {} are {}", from->name, ToString(CodeType(from->spec)));
  }
  if (codes) return "codes of a format that the file does not name (--from names it)";
  return "integers, not numbers of a format";
}

// Adds the rows of a tensor that can be measured. float64 is rounded and measured as it is, everything
// else as float32, which holds it.
void AddTensor(Table& table, const TensorFile& file, const TensorInfo& tensor, const Task& task) {
  const Array array = file.Read(tensor.name);
  const std::string what = file.Describe(tensor);
  if (array.type == ElementType::kF64) {
    return AddRows(table, tensor, array, ToFloat64(array, what), task);
  }
  if (WhyNoNumbers(array.type).empty()) {
    return AddRows(table, tensor, array, ToFloat32(array, what), task);
  }
  Array codes = array;
  TakeAsCodes(codes, *task.from, what);
  AddRows(table, tensor, array, ToFloat32(DecodedArray(codes, *task.from, what), what), task);
}

// Adds the rows of all tensors. Returns those that are not measured.
std::vector<Unmeasured> AddTensors(Table& table, const StatsOptions& options, const Task& task) {
  std::vector<Unmeasured> unmeasured;
  const TensorFile file(options.file);
  if (!options.tensor.empty()) file.Find(options.tensor);
  for (const TensorInfo& tensor : file.Tensors()) {
    if (!options.tensor.empty() && tensor.name != options.tensor) continue;
    const std::string why = WhyUnmeasured(tensor, task.from);
    if (!why.empty()) {
      unmeasured.push_back({tensor.name, tensor.dtype, why});
      continue;
    }
    const size_t rows = table.rows.size();
    try {
      AddTensor(table, file, tensor, task);
    } catch (const ScaleError& error) {
      table.rows.resize(rows);
      unmeasured.push_back({tensor.name, tensor.dtype, error.what()});
    }
  }
  return unmeasured;
}

// Returns a list of the tensors that are not measured, with their number; "" if there are none.
std::string UnmeasuredText(const std::vector<Unmeasured>& unmeasured) {
  if (unmeasured.empty()) return "";
  std::string text = fmt::format(
      "not measured: {} tensor{}\n", unmeasured.size(), unmeasured.size() == 1 ? "" : "s");
  for (const Unmeasured& tensor : unmeasured) {
    text += fmt::format("  {:<28} {:<8} {}\n", Printable(tensor.name), tensor.dtype, tensor.why);
  }
  return text;
}

// Returns lines on the tensors of three and more dimensions: how they are folded.
std::string FoldLines(const Table& table, const std::string& fold) {
  constexpr size_t kShown = 8;
  std::vector<std::string> lines;
  std::string last;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const std::string name = table.Text(row, "tensor"), shape = table.Text(row, "shape");
    if (name == last || std::count(shape.begin(), shape.end(), 'x') < 2) continue;
    last = name;
    const std::string matrices = table.Text(row, "matrices"), matrix = table.Text(row, "matrix");
    lines.push_back(matrices == "1"
                        ? fmt::format("  {} {}: one matrix of {}\n", name, shape, matrix)
                        : fmt::format("  {} {}: {} matrices of {}, each with scales of "
                                      "its own\n",
                                      name,
                                      shape,
                                      matrices,
                                      matrix));
  }
  if (lines.empty()) return "";
  std::string text = fmt::format("\nthree and more dimensions (--fold {}):\n", fold);
  for (size_t i = 0; i < std::min(kShown, lines.size()); ++i) text += lines[i];
  if (lines.size() > kShown) text += fmt::format("  and {} more\n", lines.size() - kShown);
  return text;
}

void Print(const Table& table, const StatsOptions& options, size_t granularities) {
  PrintStats(table, granularities);
  PrintWorstTensors(table, options.sort);
  fmt::print("{}", FoldLines(table, options.fold));
  fmt::print("\nrounding {}, overflow {}; * scaled by granularity {}, scale rule {}\n",
             options.rounding.mode,
             options.rounding.overflow,
             options.granularity,
             options.scale == "usual" ? "absmax" : options.scale);
}

Task ParseTask(const StatsOptions& options) {
  Task task;
  std::string others;  // a custom format keeps its commas
  for (const std::string& piece : SplitList(options.formats)) {
    if (const ScaledFormat* const word = FindScaledFormat(piece)) {
      task.words.push_back(word);
    } else {
      others += (others.empty() ? "" : ",") + piece;
    }
  }
  if (task.words.empty()) others = options.formats;  // an empty list is refused as such
  if (!others.empty()) task.formats = ParseCastFormatList(others);
  task.layouts = ParseLayouts(options.granularity);
  task.quantize.rounding = options.rounding.ParsedRounding();
  task.quantize.overflow = options.rounding.ParsedOverflow();
  task.quantize.random = {{options.rounding.seed, 0}, 0};
  task.usual = options.scale == "usual";
  if (!task.usual) task.quantize.scale_rule = ParseScaleRule(options.scale);
  task.fold = ParseFold(options.fold);
  if (!options.from.empty()) task.from = ParseCastFormat(options.from);
  return task;
}

// Throws Error if there are tensors, and none is measured.
void RequireMeasured(const StatsOptions& options,
                     const Table& table,
                     const std::vector<Unmeasured>& unmeasured) {
  if (!table.rows.empty() || unmeasured.empty()) return;
  const Unmeasured& first = unmeasured.front();
  throw Error::Format("{}: {}: '{}' is {}: {}",
                      options.file,
                      unmeasured.size() == 1
                          ? std::string("its tensor cannot be measured")
                          : fmt::format("none of {} tensors can be measured", unmeasured.size()),
                      Printable(first.name),
                      first.dtype,
                      first.why);
}

int Stats(const StatsOptions& options) {
  const Task task = ParseTask(options);
  CheckKeepsInputs("--csv", options.csv, {options.file, options.against, options.scales});
  Table table = EmptyStatsTable();
  SortStats(table, options.sort);  // refuses a wrong order before the work
  const bool against = !options.against.empty();
  const std::vector<Unmeasured> unmeasured =
      against
          ? AddErrorsAgainst(table,
                             options.file,
                             options.scales,
                             options.against,
                             options.tensor,
                             {options.from, options.given_granularity ? options.granularity : ""})
          : AddTensors(table, options, task);
  RequireMeasured(options, table, unmeasured);
  SortStats(table, options.sort);
  const std::string left_out = UnmeasuredText(unmeasured);
  if (options.csv == "-") {
    fmt::print("{}", ToCsv(table));
    if (!left_out.empty()) fmt::print(stderr, "numsim: {}", left_out);
    return 0;
  }
  if (!options.csv.empty()) WriteCsv(options.csv, table);
  if (against) {
    PrintStats(table, 2);
    PrintWorstTensors(table, options.sort);
    fmt::print("\nagainst {}; * codes with given scales\n", options.against);
  } else {
    Print(table, options, task.layouts.size() + task.words.size());
  }
  if (!left_out.empty()) fmt::print("\n{}", left_out);
  return 0;
}

}  // namespace

void AddStatsCommand(Program& program) {
  auto options = std::make_shared<StatsOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "stats", "Measure the quantisation error of the tensors in a .npy or .safetensors file");
  sub->add_option("FILE", options->file, "Input .npy or .safetensors file")
      ->required()
      ->check(NotEmpty());
  sub->add_option(
         "--format",
         options->formats,
         FormatHelp("Comma-separated list of formats; mxfp8, mxfp6, mxfp4, mxint8 and nvfp4 "
                    "have scales of their own"))
      ->capture_default_str();
  sub->add_option(
         "--granularity",
         options->granularity,
         "Comma-separated list of elements that share a scale: tensor, row, column, block:N "
         "or tile:ROWSxCOLS; a vector is one row. With --against, of the given scales, where their "
         "shape does not tell")
      ->capture_default_str();
  sub->add_option(
         "--fold",
         options->fold,
         "Tensors of three and more dimensions: stack (the last two are a matrix, with its "
         "own scales), first (one matrix, the first dimension gives the rows), or auto "
         "(first for the shapes of convolutions, else stack)")
      ->capture_default_str();
  sub->add_option("--scale",
                  options->scale,
                  "Scale rule: " + ScaleRuleNames() +
                      ", or usual (absmax for formats of up to 8 bits, else none)")
      ->capture_default_str();
  sub->add_option("--sort",
                  options->sort,
                  "Order of the rows: one of " + StatsOrders() + "; by a measure, the worst first")
      ->capture_default_str();
  sub->add_option("--from",
                  options->from,
                  "Format of unsigned integers and raw bytes, which are then codes of it; others "
                  "of them are not measured")
      ->check(NotEmpty());
  CLI::Option* const against =
      sub->add_option("--against",
                      options->against,
                      "Measure FILE, which is quantised already, against the tensors of the same "
                      "names in this file; scales are tensors NAME_scale or NAME_scale_inv of FILE")
          ->check(NotEmpty())
          ->excludes(sub->get_option("--format"))
          ->excludes(sub->get_option("--scale"))
          ->excludes(sub->get_option("--fold"));
  sub->add_option("--scales",
                  options->scales,
                  "Scales of FILE for --against, where they are in another file")
      ->check(NotEmpty())
      ->needs(against);
  sub->add_option("--tensor", options->tensor, "Measure only the tensor with this name");
  sub->add_option(
      "--csv", options->csv, "Also write the table to this CSV file; - prints only CSV");
  AddRoundingOptions(sub, options->rounding, "saturate");
  Example(sub,
          "numsim stats model-fp8.safetensors --against model-bf16.safetensors\n"
          "  numsim stats model.safetensors --format e4m3fn,int8 --granularity tensor,row "
          "--sort sqnr\n\nThe columns are defined in docs/stats.md.");
  Choose(program, sub, [options, sub] {
    options->given_granularity = sub->count("--granularity") > 0;
    return Stats(*options);
  });
}

}  // namespace numsim::apps
