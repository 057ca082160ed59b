// `numsim formats`: lists the number formats, or describes one of them.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command.h"
#include "apps/format_text.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/value_table.h"
#include "numsim/io/table_file.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

std::string_view SignText(const FormatSpec& f) {
  switch (f.sign) {
    case Sign::kUnsigned:
      return "unsigned";
    case Sign::kSignMagnitude:
      return "sign-magnitude";
    case Sign::kTwosComplement:
      return "two's complement";
  }
  return "?";
}

std::string_view ZeroText(const FormatSpec& f) {
  switch (f.zero) {
    case Zero::kSigned:
      return "+0 and -0";
    case Zero::kUnsigned:
      return "+0";
    case Zero::kNone:
      return "none";
  }
  return "?";
}

std::string InfinityText(const FormatSpec& f) {
  if (!f.HasInfinity()) return "none";
  std::string text = CodeText(f, f.InfinityCode());
  if (f.IsSigned()) text += " " + CodeText(f, f.InfinityCode() | f.SignBit());
  return text;
}

// Returns the canonical NaN of each sign.
std::string NanText(const FormatSpec& f) {
  if (!f.HasNan()) return "none";
  std::string text = CodeText(f, f.NanCode());
  if (f.NanHasSign()) text += " " + CodeText(f, f.NanCode() | f.SignBit());
  return text;
}

// Returns every NaN code, as ranges.
std::string NanCodesText(const FormatSpec& f) {
  if (!f.HasNan()) return "none";
  if (f.nan == Nan::kNegativeZero) return CodeText(f, f.SignBit());
  const uint32_t first = f.nan == Nan::kIeee ? f.InfinityCode() + 1 : f.MagnitudeMask();
  const auto range = [&](uint32_t sign) {
    const std::string last = CodeText(f, f.MagnitudeMask() | sign);
    return first == f.MagnitudeMask() ? last : CodeText(f, first | sign) + ".." + last;
  };
  return f.IsSigned() ? range(0) + " " + range(f.SignBit()) : range(0);
}

std::string_view OverflowText(const FormatSpec& f) {
  switch (f.overflow_to) {
    case OverflowTo::kInfinity:
      return "infinity";
    case OverflowTo::kNan:
      return "NaN";
    case OverflowTo::kMax:
      return "largest value";
  }
  return "?";
}

std::string_view NanInputText(const FormatSpec& f) {
  if (!f.HasNan()) return "largest positive value";
  return f.NanHasSign() ? "canonical NaN, sign kept" : "the NaN";
}

std::string_view ZeroInputText(const FormatSpec& f) {
  switch (f.zero) {
    case Zero::kSigned:
      return "sign kept";
    case Zero::kUnsigned:
      return "-0 becomes +0";
    case Zero::kNone:
      return "becomes the smallest value";
  }
  return "?";
}

Json FieldsJson(const FormatEntry& entry) {
  const FormatSpec& f = entry.spec;
  Json json;
  json["name"] = entry.name;
  json["bits"] = f.Bits();
  json["sign"] = SignText(f);
  json["exponent_bits"] = f.exponent_bits;
  json["mantissa_bits"] = f.mantissa_bits;
  json["bias"] = f.bias;
  json["max"] = MaxFinite(f);
  json["min_normal"] = MinNormal(f);
  json["min_positive"] = MinPositive(f);
  json["zero"] = ZeroText(f);
  json["infinity_codes"] = InfinityText(f);
  json["nan_codes"] = NanCodesText(f);
  json["nan_codes_canonical"] = NanText(f);
  json["overflow_nonsaturate"] = OverflowText(f);
  json["nan_input"] = NanInputText(f);
  json["zero_input"] = ZeroInputText(f);
  json["source"] = entry.source;
  json["note"] = entry.note;
  return json;
}

Json CodesJson(const FormatSpec& f) {
  Json codes = Json::array();
  for (uint32_t code = 0; code <= f.CodeMask(); ++code) {
    const ValueClass value_class = ClassOf(f, code);
    const bool number = std::isfinite(Decode(f, code));
    Json item;
    item["code"] = code;
    item["bits"] = BitsText(f, code);
    item["class"] = ClassText(value_class);
    // JSON has neither infinities nor NaN, so their value is text.
    item["value"] = number ? Json(Decode(f, code)) : Json(ValueText(Decode(f, code)));
    codes.push_back(std::move(item));
  }
  return codes;
}

std::string TableNames() {
  std::string text;
  for (const ValueTable* const table : NamedTables()) {
    text += (text.empty() ? "" : ", ") + table->name;
  }
  return text;
}

void PrintTable() {
  fmt::print("{:<14} {:>4} {:>2} {:>2} {:>5} {:>14} {:>14} {:>14}  {:<21} {:<21} {}\n",
             "name",
             "bits",
             "E",
             "M",
             "bias",
             "max",
             "min normal",
             "min positive",
             "infinity",
             "NaN",
             "source");
  for (const FormatEntry& entry : FormatTable()) {
    const FormatSpec& f = entry.spec;
    fmt::print("{:<14} {:>4} {:>2} {:>2} {:>5} {:>14.8g} {:>14.8g} {:>14.8g}  {:<21} {:<21} {}\n",
               entry.name,
               f.Bits(),
               f.exponent_bits,
               f.mantissa_bits,
               f.bias,
               MaxFinite(f),
               MinNormal(f),
               MinPositive(f),
               InfinityText(f),
               NanText(f),
               entry.source);
  }
  fmt::print(
      "\nNames of torch, ml_dtypes, CUDA, OCP, ONNX and others are accepted too, in any case.\n"
      "A custom format: eXmY[:bias=N,inf=none|ieee|top,nan=none|ieee|all-ones|negative-zero,\n"
      "zero=signed|unsigned,overflow=inf|nan|max,subnormals=keep|flush]; ueXmY is unsigned. Keys also "
      "go after a name.\nFixed point: fixedI.F[:range=full|symmetric], ufixedI.F, intN, uintN; I counts "
      "the sign bit.\ne2m1, e2m3 and e3m2 are OCP's; ieee-e2m1 is IEEE-like, as other eXmY are. {}.\n"
      "Tables of values, for casts and quantised matrices: {} and table:FILE.\n",
      FormatNote("e4m3"),
      TableNames());
}

// The table of docs/formats.md on tables of values.
void PrintTablesMarkdown() {
  fmt::print(
      "| name | bits | values | lowest | highest | source | note |\n"
      "| --- | ---: | ---: | ---: | ---: | --- | --- |\n");
  for (const ValueTable* const table : NamedTables()) {
    fmt::print("| `{}` | {} | {} | {} | {} | {} | {} |\n",
               table->name,
               table->spec.Bits(),
               table->values.size(),
               table->values.front(),
               table->values.back(),
               table->source,
               table->note);
  }
}

void PrintMarkdown() {
  fmt::print(
      "| name | bits | E | M | bias | max | min normal | min positive | zero | infinity | "
      "NaN | overflow | source | note |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | --- | --- | --- | "
      "--- |\n");
  for (const FormatEntry& entry : FormatTable()) {
    const FormatSpec& f = entry.spec;
    fmt::print("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
               entry.name,
               f.Bits(),
               f.exponent_bits,
               f.mantissa_bits,
               f.bias,
               MaxFinite(f),
               MinNormal(f),
               MinPositive(f),
               ZeroText(f),
               InfinityText(f),
               NanText(f),
               OverflowText(f),
               entry.source,
               entry.note);
  }
}

void PrintCodes(const FormatSpec& f) {
  constexpr uint32_t kColumns = 4;
  const uint32_t count = f.CodeMask() + 1;
  const uint32_t rows = (count + kColumns - 1) / kColumns;
  const std::string_view layout = f.IsTable()                       ? "one number"
                                  : f.sign == Sign::kTwosComplement ? "two's complement"
                                                                    : "sign exponent mantissa";
  fmt::print("\nevery code: bits ({}), value\n", layout);
  for (uint32_t row = 0; row < rows; ++row) {
    std::string line;
    for (uint32_t column = 0; column < kColumns; ++column) {
      const uint32_t code = column * rows + row;
      if (code >= count) continue;
      const bool unused = ClassOf(f, code) == ValueClass::kUnused;
      line += fmt::format("{} {} {:<15}",
                          CodeText(f, code),
                          BitsText(f, code),
                          unused ? "unused" : ValueText(Decode(f, code)));
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

// Returns the names of other sources for a format: "torch: float8_e4m3fn; CUDA: ...".
std::string OtherNamesText(std::string_view format) {
  std::string text;
  std::string_view source;
  for (const FormatName& row : OtherFormatNames()) {
    if (row.format != format) continue;
    const bool same = row.source == source;
    text += fmt::format("{}{}", text.empty() ? "" : same ? ", " : "; ", same ? "" : row.source);
    text += fmt::format("{}{}", same ? "" : ": ", row.name);
    source = row.source;
  }
  return text;
}

int PrintValueTable(const ValueTable& table, bool json) {
  const auto code_of = [&](size_t position) { return CodeText(table.spec, table.codes[position]); };
  if (json) {
    Json fields;
    fields["name"] = table.name;
    fields["bits"] = table.spec.Bits();
    fields["max"] = table.largest;
    fields["values"] = table.values;
    fields["source"] = table.source;
    fields["note"] = table.note;
    fields["codes"] = CodesJson(table.spec);
    fmt::print("{}\n", fields.dump(2));
    return 0;
  }
  fmt::print("{}: {}\n", table.name, table.note);
  const auto line = [](std::string_view key, const auto& value) {
    fmt::print("  {:<14} {}\n", key, value);
  };
  line("source", table.source);
  line("layout",
       fmt::format("{} bits: a table of {} values", table.spec.Bits(), table.values.size()));
  line("lowest", fmt::format("{} ({})", table.values.front(), code_of(0)));
  line("highest", fmt::format("{} ({})", table.values.back(), code_of(table.values.size() - 1)));
  line("NaN input", fmt::format("highest value ({})", table.values.back()));
  line("overflow", "the end of the table");
  line("for", "casts and quantised matrices, on the host");
  PrintCodes(table.spec);
  return 0;
}

// `note` is the note of the name that was given.
void PrintOne(const FormatEntry& entry, std::string_view note) {
  const FormatSpec& f = entry.spec;
  fmt::print("{}: {}\n", entry.name, entry.note);
  const auto line = [](std::string_view key, const auto& value) {
    fmt::print("  {:<14} {}\n", key, value);
  };
  line("source", entry.source);
  line("layout",
       fmt::format("{} bits: {}, {} exponent, {} mantissa, bias {}",
                   f.Bits(),
                   SignText(f),
                   f.exponent_bits,
                   f.mantissa_bits,
                   f.bias));
  line("max", fmt::format("{} ({})", MaxFinite(f), CodeText(f, f.MaxFiniteCode())));
  if (f.full_range)
    line("min", fmt::format("{} ({})", Decode(f, f.SignBit()), CodeText(f, f.SignBit())));
  if (f.flush_subnormals)
    line("subnormals", "flushed: results become zero, codes are read as zero");
  line("min normal", MinNormal(f));
  line("min positive", MinPositive(f));
  if (f.subnormal_shift != 0) {
    line("subnormal gap",
         fmt::format(
             "from {} to {}", Decode(f, (uint32_t{1} << f.mantissa_bits) - 1), MinNormal(f)));
  }
  line("zero", fmt::format("{}; an input zero: {}", ZeroText(f), ZeroInputText(f)));
  line("infinity", InfinityText(f));
  line("NaN", NanCodesText(f));
  line("NaN input",
       fmt::format("{} ({})", NanInputText(f), f.HasNan() ? NanText(f) : ValueText(MaxFinite(f))));
  line("overflow", fmt::format("{} (nonsaturate), largest value (saturate)", OverflowText(f)));
  if (const std::string names = OtherNamesText(entry.name); !names.empty()) {
    line("other names", names);
  }
  if (!note.empty()) line("note", note);
  if (f.Bits() <= 8) PrintCodes(f);
}

int PrintFormats(const std::string& name, bool json, bool markdown) {
  if (name.empty()) {
    if (json) {
      Json all = Json::array();
      for (const FormatEntry& entry : FormatTable()) all.push_back(FieldsJson(entry));
      fmt::print("{}\n", all.dump(2));
    } else if (markdown) {
      PrintMarkdown();
    } else {
      PrintTable();
    }
    return 0;
  }
  if (name.starts_with("table:")) return PrintValueTable(TableOf(ParseCastFormat(name).spec), json);
  if (const ValueTable* const table = FindTable(name)) return PrintValueTable(*table, json);
  const Format format = ParseFormatWithoutNote(name);  // the note is below
  const FormatEntry* known = FindFormat(format.name);
  const FormatEntry entry =
      known != nullptr ? *known : FormatEntry{format.name, format.spec, "custom", "custom format"};
  if (json) {
    Json fields = FieldsJson(entry);
    if (const std::string warning = FormatNote(name); !warning.empty()) fields["warning"] = warning;
    if (entry.spec.Bits() <= 8) fields["codes"] = CodesJson(entry.spec);
    fmt::print("{}\n", fields.dump(2));
  } else {
    PrintOne(entry, FormatNote(format.name));
  }
  return 0;
}

}  // namespace

void AddFormatsCommand(Program& program) {
  struct Options {
    std::string name;
    bool json = false;
    bool markdown = false;
    bool tables = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub =
      program.app.add_subcommand("formats", "List the number formats, or describe one of them");
  sub->add_option(
      "NAME", options->name, "Describe this format: a name, a custom format or table:FILE");
  sub->add_flag("--json", options->json, "Print JSON");
  sub->add_flag("--markdown", options->markdown, "Print the Markdown table of docs/formats.md");
  sub->add_flag("--tables", options->tables, "With --markdown, print that of tables of values")
      ->needs("--markdown");
  Example(sub, "numsim formats e4m3fn\n  numsim formats e4m3:bias=8,inf=none,nan=all-ones --json");
  Choose(program, sub, [options] {
    if (options->tables) {
      PrintTablesMarkdown();
      return 0;
    }
    return PrintFormats(options->name, options->json, options->markdown);
  });
}

}  // namespace numsim::apps
