// The oracle: operations by name, their cases with right results, and a judge.
#include <memory>

#include "libnumsim/python/src/bindings.h"
#include "numsim/base/parallel.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/judge.h"
#include "numsim/oracle/operation.h"

namespace numsim::python {
namespace {

using Rows = InputOf<uint64_t>;  // cases x columns

constexpr size_t kCasesPerTask = size_t{1} << 14;

std::optional<Rounding> RoundingOf(std::string_view mode, std::string_view variant, int bits) {
  if (mode.empty()) return std::nullopt;
  return Rounding{ParseRoundingMode(mode), ParseStochasticVariant(variant), bits};
}

// An empty text stands for the default of the operation.
template <typename T>
std::optional<T> Parsed(std::string_view text, T (*parse)(std::string_view)) {
  if (text.empty()) return std::nullopt;
  return parse(text);
}

nb::list ColumnsOfOperation(const std::vector<Column>& columns) {
  nb::list rows;
  for (const Column& column : columns) {
    rows.append(nb::make_tuple(column.name,
                               column.bits,
                               column.format ? ToString(column.format->spec) : std::string(),
                               column.kind == ColumnKind::kRandom));
  }
  return rows;
}

// Fills a matrix with cases `first` and those after it, one per row.
void FillCases(const CaseRows& rows, uint64_t first, const OutputOf<uint64_t>& out) {
  const size_t columns = rows.columns().size();
  if (out.ndim() != 2 || out.shape(1) != columns) {
    throw Error::Format("out: expected {} columns", columns);
  }
  const size_t count = out.shape(0);
  if (first > rows.size() || count > rows.size() - first) {
    throw Error("cases: beyond the last one");
  }
  const ArrayCall call;
  ParallelFor(count, 1 << 10, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      rows.Row(first + i, std::span<uint64_t>(out.data() + i * columns, columns));
    }
  });
}

// Adds rows of inputs, results and perhaps flags, the first of which is case `first`.
void AddRows(Judge& judge, const Rows& rows, uint64_t first) {
  if (rows.ndim() != 2) throw Error::Format("expected 2 dimensions, found {}", rows.ndim());
  const size_t count = rows.shape(0), width = rows.shape(1);
  const size_t least = judge.columns();
  if (width != least && width != least + 1) {
    throw Error::Format(
        "rows: expected {} columns, or {} with flags, found {}", least, least + 1, width);
  }
  const size_t tasks = (count + kCasesPerTask - 1) / kCasesPerTask;
  const ArrayCall call;
  std::vector<std::unique_ptr<CaseTally>> parts(tasks);
  ParallelTasks(tasks, [&](size_t task) {
    parts[task] = judge.Fresh();
    const size_t begin = task * kCasesPerTask, end = std::min(count, begin + kCasesPerTask);
    for (size_t i = begin; i < end; ++i) {
      parts[task]->Add(first + i, {rows.data() + i * width, width});
    }
  });
  for (const std::unique_ptr<CaseTally>& part : parts) judge.Append(*part);
}

nb::list FirstMismatches(const Judge& judge) {
  nb::list list;
  for (const Mismatch& m : judge.first()) {
    list.append(
        nb::make_tuple(m.place, m.row, m.expected, int{m.expected_flags}, ToString(m.kind)));
  }
  return list;
}

void BindOperation(nb::module_& m) {
  nb::class_<Operation>(m, "Operation")
      .def_prop_ro("name", [](const Operation& op) { return op.info().name; })
      .def_prop_ro("has_flags", &Operation::has_flags)
      .def_prop_ro("inputs", [](const Operation& op) { return ColumnsOfOperation(op.inputs()); })
      .def_prop_ro("results", [](const Operation& op) { return ColumnsOfOperation(op.results()); });
  m.def(
      "make_operation",
      [](const std::string& op,
         const std::string& format,
         const std::string& format_b,
         const std::string& format_c,
         const std::string& to,
         const std::string& scale_format,
         const std::string& accumulation,
         bool any_operands,
         std::string_view rounding,
         std::string_view variant,
         int random_bits,
         std::string_view overflow,
         std::string_view tininess,
         int length,
         bool tensor_scale,
         int block,
         const std::string& scale_rule,
         const std::string& scale_rounding,
         const std::string& profile) {
        return MakeOperation({.op = op,
                              .format = format,
                              .format_b = format_b,
                              .format_c = format_c,
                              .to = to,
                              .scale_format = scale_format,
                              .accumulation = accumulation,
                              .any_operands = any_operands,
                              .rounding = RoundingOf(rounding, variant, random_bits),
                              .overflow = Parsed<Overflow>(overflow, &ParseOverflow),
                              .tininess = Parsed<Tininess>(tininess, &ParseTininess),
                              .length = length,
                              .tensor_scale = tensor_scale,
                              .profile = profile,
                              .block = block,
                              .scale_rule = scale_rule,
                              .scale_rounding = scale_rounding})
            .release();
      },
      nb::arg("op"),
      nb::arg("format") = "",
      nb::arg("format_b") = "",
      nb::arg("format_c") = "",
      nb::arg("to") = "",
      nb::arg("scale_format") = "",
      nb::arg("accumulation") = "",
      nb::arg("any_operands") = false,
      nb::arg("rounding") = "",
      nb::arg("variant") = "a",
      nb::arg("random_bits") = 32,
      nb::arg("overflow") = "",
      nb::arg("tininess") = "",
      nb::arg("length") = 0,
      nb::arg("tensor_scale") = false,
      nb::arg("block") = 0,
      nb::arg("scale_rule") = "",
      nb::arg("scale_rounding") = "",
      nb::arg("profile") = "");
  // (name, summary) of each operation.
  m.def("operation_table", [] {
    nb::list rows;
    for (const OperationInfo& row : OperationTable()) {
      rows.append(nb::make_tuple(row.name, row.summary));
    }
    return rows;
  });
}

}  // namespace

void BindOracle(nb::module_& m) {
  BindOperation(m);
  nb::class_<CaseRows>(m, "CaseRows")
      .def(
          "__init__",
          [](CaseRows* self,
             const Operation& operation,
             std::string_view level,
             uint64_t seed,
             bool results) {
            new (self) CaseRows(operation, ParseCaseLevel(level, seed), results);
          },
          nb::arg("operation"),
          nb::arg("level"),
          nb::arg("seed"),
          nb::arg("results"),
          nb::keep_alive<1, 2>())
      .def("__len__", &CaseRows::size)
      .def_prop_ro("columns",
                   [](const CaseRows& rows) { return ColumnsOfOperation(rows.columns()); })
      .def("fill", &FillCases, nb::arg("first"), nb::arg("out").noconvert());
  nb::class_<Judge>(m, "Judge")
      .def(
          "__init__",
          [](Judge* self, const Operation& operation, std::string_view nan, size_t limit) {
            new (self) Judge(operation, ParseNanRule(nan), limit);
          },
          nb::arg("operation"),
          nb::arg("nan"),
          nb::arg("limit"),
          nb::keep_alive<1, 2>())
      .def("add", &AddRows, nb::arg("rows").noconvert(), nb::arg("first"))
      .def_prop_ro("cases", &Judge::cases)
      .def_prop_ro("mismatches", [](const Judge& judge) { return judge.mismatches(); })
      .def("first", &FirstMismatches);
}

}  // namespace numsim::python
