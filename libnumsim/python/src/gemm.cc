// Matrix products under an accumulation mode.
#include "numsim/gemm.h"

#include <nanobind/stl/variant.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <variant>

#include "libnumsim/python/src/bindings.h"
#include "libnumsim/python/src/held_matrix.h"
#include "numsim/gemm/split_k.h"
#include "numsim/stats/product_error.h"

namespace numsim::python {
namespace {

// The source of an operand: a quantised matrix, or an array with two dimensions of float32 values of
// a format or of its codes. Its rows are the vectors of the product, or its columns if transposed.
using Source = std::variant<HeldMatrix*, PlacedInput>;

GemmOperand OfArray(const FormatSpec& format,
                    const PlacedInput& array,
                    bool transposed,
                    Place place) {
  const MatrixShape shape = ShapeOf(array);
  GemmOperand operand{.format = format, .transposed = transposed};
  operand.rows = transposed ? shape.cols : shape.rows;
  operand.inner = transposed ? shape.rows : shape.cols;
  operand.values.place = place;  // also without elements, which may have no address
  if (array.dtype() == nb::dtype<uint8_t>()) {
    operand.codes8 = MatrixAt<const uint8_t>(place, "matmul", array);
  } else if (array.dtype() == nb::dtype<uint16_t>()) {
    operand.codes16 = MatrixAt<const uint16_t>(place, "matmul", array);
  } else {
    operand.values = MatrixAt<const float>(place, "matmul", array);
  }
  return operand;
}

GemmOperand OfSource(const FormatSpec& format, const Source& source, bool transposed, Place place) {
  if (const auto* const array = std::get_if<PlacedInput>(&source)) {
    return OfArray(format, *array, transposed, place);
  }
  return AsOperand(std::get<HeldMatrix*>(source)->ViewAt(place), transposed);
}

// Returns the mode of a text. That of the last call is kept per thread: programs use few.
const AccumulationMode& ModeOf(std::string_view text) {
  thread_local std::string last;
  thread_local AccumulationMode mode;
  if (text != last || last.empty()) {
    mode = ParseAccumulationMode(text);
    last = text;
  }
  return mode;
}

// Returns `count` rows of an operand that is not transposed. `first` is a multiple of its row_group.
GemmOperand RowsOf(GemmOperand a, size_t first, size_t count) {
  const auto cut = [&](auto& matrix) {
    if (matrix.data != nullptr) matrix = matrix.Rows(first, count);
  };
  cut(a.values);
  cut(a.codes8);
  cut(a.codes16);
  a.rows = count;
  const size_t scales = first / a.scales.row_group * a.scales.row_stride;
  const size_t all = a.scales.data.Elements();
  if (all != 0) a.scales.data = a.scales.data.Columns(scales, all - scales);
  return a;
}

// Throws what the handler of a signal raises that came meanwhile: KeyboardInterrupt for Ctrl-C.
void CheckSignals() {
  const nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Does what Gemm does, on the host. A long product is computed in bands of rows, which take about half
// a second, with a look at signals between them; their bits do not depend on the bands.
void InterruptibleGemm(const GemmOperand& a,
                       const GemmOperand& b,
                       const AccumulationMode& mode,
                       Epilogue store,
                       const SplitK* split,
                       std::span<float> out) {
  const auto multiply = [&](const GemmOperand& rows, std::span<float> results) {
    if (split != nullptr) return Gemm(rows, b, mode, *split, store, results);
    Gemm(rows, b, mode, store, results);
  };
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.5, kLongProducts = 1 << 28;
  const double products = static_cast<double>(out.size()) * static_cast<double>(a.inner);
  if (a.transposed || products < kLongProducts || mode.kind == AccumulationKind::kLibrary) {
    return multiply(a, out);
  }
  const size_t least = std::lcm(size_t{16}, a.scales.row_group);
  size_t first = 0, count = std::min(least, a.rows);
  while (true) {
    const auto start = Clock::now();
    multiply(RowsOf(a, first, count), out.subspan(first * b.rows, count * b.rows));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    first += count;
    if (first == a.rows) return;
    CheckSignals();
    const double rows = static_cast<double>(count) * kSeconds / std::max(seconds, 1e-6);
    const auto bands = static_cast<size_t>(rows / static_cast<double>(least));
    count = std::min(std::max<size_t>(bands, 1) * least, a.rows - first);
  }
}

// Writes A B^T, a.rows x b.rows. The formats are those of arrays. An epilogue other than float64
// and a split are for the host alone. One call takes both sources: a call per operand took as long as the product.
void Multiply(const FormatSpec& format_a,
              const Source& source_a,
              bool transposed_a,
              const FormatSpec& format_b,
              const Source& source_b,
              bool transposed_b,
              std::string_view mode,
              bool any_operands,
              const PlacedOutput& out,
              std::string_view epilogue,
              const SplitK* split,
              DeviceContext* context) {
  const Place place = PlaceOf(context);
  const GemmOperand a = OfSource(format_a, source_a, transposed_a, place);
  const GemmOperand b = OfSource(format_b, source_b, transposed_b, place);
  const AccumulationMode& accumulation = ModeOf(mode);
  if (!any_operands) CheckOperands(mode, a.format, b.format, "any_operands=True allows it");
  const Epilogue store = ParseEpilogue(epilogue);
  const auto product = MatrixAt<float>(place, "matmul", out);
  const ArrayCall call;
  if (context != nullptr) return Gemm(a, b, accumulation, product);
  InterruptibleGemm(a, b, accumulation, store, split, product.Span());
}

void BindModes(nb::module_& m) {
  // (name, operands, measured, note, longest inner dimension measured) of each named mode.
  m.def("accumulation_modes", [] {
    nb::list rows;
    for (const AccumulationModeRow& row : AccumulationModeTable()) {
      rows.append(
          nb::make_tuple(row.name, row.operands, row.measured, row.note, row.measured_inner));
    }
    return rows;
  });
  m.def(
      "accumulation_definition",
      [](std::string_view text) { return DefinitionText(ParseAccumulationMode(text)); },
      nb::arg("text"));
  m.def("gemm_library", &GemmLibrary);
}

void BindSplit(nb::module_& m) {
  nb::class_<SplitK>(m, "SplitK")
      .def(
          "__init__",
          [](SplitK* self,
             size_t parts,
             size_t tile,
             std::string_view partition,
             const FormatSpec& partials) {
            new (self) SplitK{parts, tile, ParseSplitPartition(partition), partials};
          },
          nb::arg("parts"),
          nb::arg("tile"),
          nb::arg("partition"),
          nb::arg("partials"))
      .def(
          "longest",
          [](const SplitK& self, size_t inner) { return PartOf(self, inner, 0).end; },
          nb::arg("inner"))
      .def("left_out", &ProductsLeftOut, nb::arg("inner"));
  m.def("split_tile", &CublasLtTile, nb::arg("format_a"), nb::arg("format_b"));
}

void BindProductError(nb::module_& m) {
  nb::class_<ProductError>(m, "ProductError")
      .def_ro("relative_error", &ProductError::relative_error)
      .def_ro("row_error", &ProductError::row_error)
      .def_ro("column_error", &ProductError::column_error)
      .def_ro("bias", &ProductError::bias)
      .def_ro("gain", &ProductError::gain)
      .def_ro("sqnr_db", &ProductError::sqnr_db)
      .def_ro("cosine", &ProductError::cosine)
      .def_ro("error_variance", &ProductError::error_variance)
      .def_ro("signal_variance", &ProductError::signal_variance);
  m.def(
      "compare_product",
      [](const InputOf<float>& reference, const InputOf<float>& product, size_t cols) {
        const ArrayCall call;
        return CompareProduct(Elements(reference), Elements(product), cols);
      },
      nb::arg("reference").noconvert(),
      nb::arg("product").noconvert(),
      nb::arg("cols"));
}

}  // namespace

void BindGemm(nb::module_& m) {
  BindModes(m);
  BindSplit(m);
  BindProductError(m);
  m.def("gemm",
        &Multiply,
        nb::arg("format_a"),
        nb::arg("a"),
        nb::arg("transposed_a"),
        nb::arg("format_b"),
        nb::arg("b"),
        nb::arg("transposed_b"),
        nb::arg("mode"),
        nb::arg("any_operands"),
        nb::arg("out").noconvert(),
        nb::arg("epilogue"),
        nb::arg("split") = nb::none(),
        nb::arg("context") = nb::none());
}

}  // namespace numsim::python
