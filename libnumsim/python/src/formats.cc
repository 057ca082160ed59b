// Formats: the table, parsing, properties and values.
#include <fmt/format.h>

#include <cmath>

#include "libnumsim/python/src/bindings.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/value_table.h"
#include "numsim/io/table_file.h"

namespace numsim::python {
namespace {

const char* ClassName(const FormatSpec& spec, uint32_t code) {
  switch (Classify(spec, code)) {
    case ValueClass::kZero:
      return "zero";
    case ValueClass::kSubnormal:
      return "subnormal";
    case ValueClass::kNormal:
      return "normal";
    case ValueClass::kInfinity:
      return "infinity";
    case ValueClass::kNan:
      return "nan";
    case ValueClass::kUnused:
      return "unused";
  }
  return "";
}

// Passes the note of a name that the library reads, in a recipe for example, on to Python's warnings.
void WarnInPython(const std::string& note) {
  nb::gil_scoped_acquire gil;
  nb::module_::import_("numsim._formats").attr("warn")(note);
}

}  // namespace

void BindFormats(nb::module_& m) {
  nb::class_<FormatSpec>(m, "FormatSpec")
      .def(
          "__eq__",
          [](const FormatSpec& a, const FormatSpec& b) { return a == b; },
          nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def_ro("exponent_bits", &FormatSpec::exponent_bits)
      .def_ro("mantissa_bits", &FormatSpec::mantissa_bits)
      .def_ro("bias", &FormatSpec::bias)
      .def_prop_ro("bits", &FormatSpec::Bits)
      .def_prop_ro("storage_bytes", &FormatSpec::StorageBytes)
      .def_prop_ro("is_signed", &FormatSpec::IsSigned)
      .def_prop_ro("has_infinity", &FormatSpec::HasInfinity)
      .def_prop_ro("has_nan", &FormatSpec::HasNan)
      .def_prop_ro("has_zero", [](const FormatSpec& s) { return s.zero != Zero::kNone; })
      .def_prop_ro("max_finite", [](const FormatSpec& s) { return double{MaxFinite(s)}; })
      .def_prop_ro("min_normal", [](const FormatSpec& s) { return double{MinNormal(s)}; })
      .def_prop_ro("min_positive", [](const FormatSpec& s) { return double{MinPositive(s)}; })
      .def_prop_ro("min_exponent", &FormatSpec::MinExponent)
      .def_prop_ro("max_exponent", &LargestExponent)
      .def_prop_ro("is_table", &FormatSpec::IsTable)
      .def_prop_ro("nan_code",
                   [](const FormatSpec& s) -> std::optional<uint32_t> {
                     if (!s.HasNan()) return std::nullopt;
                     return s.NanCode();
                   })
      .def(
          "class_of",
          [](const FormatSpec& s, uint32_t code) {
            if (!s.IsTable()) return ClassName(s, code & s.CodeMask());
            const float value = Decode(s, code & s.CodeMask());
            return std::isnan(value) ? "unused" : value == 0 ? "zero" : "normal";
          },
          nb::arg("code"))
      .def("__str__", [](const FormatSpec& s) { return ToString(s); });

  SetUserInterface(UserInterface::kPython);
  SetFormatNoteHandler(WarnInPython);
  // (name, FormatSpec), without a warning.
  m.def(
      "parse_format",
      [](std::string_view text) {
        const bool is_table = text.starts_with("table:") || FindTable(text) != nullptr;
        const Format format = is_table ? ParseCastFormat(text) : ParseFormatWithoutNote(text);
        return nb::make_tuple(format.name, format.spec);
      },
      nb::arg("text"));
  m.def(
      "add_table",
      [](const std::string& name, const std::vector<float>& values) {
        const Format format = AddTable(name, values);
        return nb::make_tuple(format.name, format.spec);
      },
      nb::arg("name"),
      nb::arg("values"));
  // (name, source, note) of each table of values with a name.
  m.def("value_tables", [] {
    nb::list rows;
    for (const ValueTable* const table : NamedTables()) {
      rows.append(nb::make_tuple(table->name, table->source, table->note));
    }
    return rows;
  });
  m.def("format_note", &FormatNote, nb::arg("text"));
  // {word for a format with scales: (elements, scaling)}.
  m.def("scaled_formats", [] {
    nb::dict words;
    for (const ScaledFormat& row : ScaledFormats()) {
      words[nb::cast(row.name)] =
          nb::make_tuple(row.elements, fmt::format("block:{}/{}", row.block, row.rule));
    }
    return words;
  });
  m.def("from_former_names", &FromFormerNames, nb::arg("text"));
  // (name, source, note) of each format of the table.
  m.def("format_table", [] {
    nb::list rows;
    for (const FormatEntry& entry : FormatTable()) {
      rows.append(nb::make_tuple(entry.name, entry.source, entry.note));
    }
    return rows;
  });
}

}  // namespace numsim::python
