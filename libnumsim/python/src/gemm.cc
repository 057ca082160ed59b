// Matrix products under an accumulation mode.
#include "numsim/gemm.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "libnumsim/python/src/bindings.h"
#include "libnumsim/python/src/held_matrix.h"
#include "numsim/gemm/epilogue.h"
#include "numsim/stats/product_error.h"

namespace numsim::python {
namespace {

// An operand, and what owns its memory: a matrix, or an array, which may be a copy of the caller's.
struct HeldOperand {
  GemmOperand operand;
  nb::object matrix = {};
  PlacedInput array = {};
};

HeldOperand OfQuantized(nb::object matrix, bool transposed, DeviceContext* context) {
  const auto& held = nb::cast<const HeldMatrix&>(matrix);
  return {AsOperand(QuantizedSpan(held.At(PlaceOf(context))), transposed), std::move(matrix)};
}

// `array` has two dimensions: float32 values of the format, or its codes. Its rows are the vectors
// of the product, or its columns if `transposed`.
HeldOperand OfArray(const FormatSpec& format,
                    PlacedInput array,
                    bool transposed,
                    DeviceContext* context) {
  const Place place = PlaceOf(context);
  const MatrixShape shape = ShapeOf(array);
  HeldOperand held{.operand = {.format = format, .transposed = transposed}};
  held.operand.rows = transposed ? shape.cols : shape.rows;
  held.operand.inner = transposed ? shape.rows : shape.cols;
  held.operand.values.place = place;  // also without elements, which may have no address
  if (array.dtype() == nb::dtype<uint8_t>()) {
    held.operand.codes8 = MatrixAt<const uint8_t>(place, "matmul", array);
  } else if (array.dtype() == nb::dtype<uint16_t>()) {
    held.operand.codes16 = MatrixAt<const uint16_t>(place, "matmul", array);
  } else {
    held.operand.values = MatrixAt<const float>(place, "matmul", array);
  }
  held.array = std::move(array);
  return held;
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
                       std::span<float> out) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.5, kLongProducts = 1 << 28;
  const double products = static_cast<double>(out.size()) * static_cast<double>(a.inner);
  if (a.transposed || products < kLongProducts || mode.kind == AccumulationKind::kLibrary) {
    return Gemm(a, b, mode, store, out);
  }
  const size_t least = std::lcm(size_t{16}, a.scales.row_group);
  size_t first = 0, count = std::min(least, a.rows);
  while (true) {
    const auto start = Clock::now();
    Gemm(RowsOf(a, first, count), b, mode, store, out.subspan(first * b.rows, count * b.rows));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    first += count;
    if (first == a.rows) return;
    CheckSignals();
    const double rows = static_cast<double>(count) * kSeconds / std::max(seconds, 1e-6);
    const auto bands = static_cast<size_t>(rows / static_cast<double>(least));
    count = std::min(std::max<size_t>(bands, 1) * least, a.rows - first);
  }
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
  BindProductError(m);
  nb::class_<HeldOperand>(m, "Operand")
      .def_prop_ro("rows", [](const HeldOperand& h) { return h.operand.rows; })
      .def_prop_ro("inner", [](const HeldOperand& h) { return h.operand.inner; });
  m.def("operand_of_quantized",
        &OfQuantized,
        nb::arg("matrix"),
        nb::arg("transposed"),
        nb::arg("context") = nb::none());
  m.def("operand_of_array",
        &OfArray,
        nb::arg("format"),
        nb::arg("array"),
        nb::arg("transposed"),
        nb::arg("context") = nb::none());
  // Writes A B^T, a.rows x b.rows. An epilogue other than float64 is for the host alone.
  m.def(
      "gemm",
      [](const HeldOperand& a,
         const HeldOperand& b,
         std::string_view mode,
         bool any_operands,
         const PlacedOutput& out,
         std::string_view epilogue,
         DeviceContext* context) {
        const AccumulationMode& accumulation = ModeOf(mode);
        if (!any_operands) {
          CheckOperands(mode, a.operand.format, b.operand.format, "any_operands=True allows it");
        }
        const Epilogue store = ParseEpilogue(epilogue);
        const auto product = MatrixAt<float>(PlaceOf(context), "matmul", out);
        const ArrayCall call;
        if (context != nullptr) return Gemm(a.operand, b.operand, accumulation, product);
        InterruptibleGemm(a.operand, b.operand, accumulation, store, product.Span());
      },
      nb::arg("a"),
      nb::arg("b"),
      nb::arg("mode"),
      nb::arg("any_operands"),
      nb::arg("out").noconvert(),
      nb::arg("epilogue"),
      nb::arg("context") = nb::none());
}

}  // namespace numsim::python
