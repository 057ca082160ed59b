// Correctly rounded arithmetic and elementary functions on arrays of codes.
#include "numsim/cast/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "libnumsim/python/src/bindings.h"
#include "numsim/base/nearest_name.h"
#include "numsim/cast/elementary.h"

namespace numsim::python {
namespace {

constexpr std::array<std::pair<std::string_view, ArithmeticOp>, 6> kOperations = {{
    {"add", ArithmeticOp::kAdd},
    {"sub", ArithmeticOp::kSubtract},
    {"mul", ArithmeticOp::kMultiply},
    {"div", ArithmeticOp::kDivide},
    {"fma", ArithmeticOp::kFma},
    {"sqrt", ArithmeticOp::kSquareRoot},
}};

using Operation = std::variant<ArithmeticOp, ElementaryFunction>;

[[noreturn]] void RefuseOperation(std::string_view text) {
  std::string all;
  for (const auto& [name, op] : kOperations) all += fmt::format("{}, ", name);
  for (const ElementaryFunction f : kElementaryFunctions) all += fmt::format("{}, ", ToString(f));
  throw NotOneOf("operation", text, all.substr(0, all.size() - 2));
}

Operation ParseOperation(std::string_view text) {
  for (const auto& [name, op] : kOperations) {
    if (name == text) return op;
  }
  for (const ElementaryFunction function : kElementaryFunctions) {
    if (ToString(function) == text) return function;
  }
  RefuseOperation(text);
}

// Up to three operands, and the arrays of their codes.
struct Operands {
  std::array<ArrayOperand, 3> list = {};
  std::array<Input, 3> arrays;
  std::ptrdiff_t count = 0;

  // `given`: the format and the codes of each operand in turn. Codes with gaps are copied.
  explicit Operands(const nb::list& given) {
    if (given.size() > 2 * list.size()) throw Error::Format("expected at most 3 operands");
    for (size_t i = 0; 2 * i + 1 < given.size(); ++i, ++count) {
      list[i].format = nb::cast<const FormatSpec&>(given[2 * i]);
      arrays[i] = nb::cast<Input>(given[2 * i + 1]);
      WithCodes("arithmetic", arrays[i], [&](auto span) { list[i].codes = span; });
    }
  }
};

bool HaveShapeOf(const Operands& operands, const Output& out) {
  const auto same = [&](const Input& array) {
    return array.ndim() == out.ndim() &&
           std::equal(out.shape_ptr(), out.shape_ptr() + out.ndim(), array.shape_ptr());
  };
  return std::all_of(operands.arrays.begin(), operands.arrays.begin() + operands.count, same);
}

// Writes out[i] = op(operands[i]...), and the flags of each element if wanted. Returns false, and
// writes nothing, if an operand does not have the shape of `out`.
bool Apply(std::string_view name,
           const nb::list& given,
           const EncodePlan& to,
           const Output& out,
           const ArrayRandom& random,
           const std::optional<OutputOf<uint8_t>>& flags) {
  const Operation operation = ParseOperation(name);
  const Operands operands(given);
  if (!HaveShapeOf(operands, out)) return false;
  const auto& list = operands.list;
  const std::span<uint8_t> each = flags ? Elements(*flags) : std::span<uint8_t>();
  WithCodes("arithmetic", out, [&](auto codes) {
    const ArrayCall call;
    const bool wanted = flags.has_value();
    if (const auto* op = std::get_if<ArithmeticOp>(&operation)) {
      Arithmetic(*op, list[0], list[1], list[2], to, codes, random, wanted, each);
    } else {
      const auto function = std::get<ElementaryFunction>(operation);
      Elementary(function, list[0], to, codes, random, wanted, each);
    }
  });
  return true;
}

}  // namespace

void BindArithmetic(nb::module_& m) {
  m.def("arithmetic",
        &Apply,
        nb::arg("op"),
        nb::arg("operands"),
        nb::arg("to"),
        nb::arg("out").noconvert(),
        nb::arg("random") = ArrayRandom(),
        nb::arg("flags").noconvert() = nb::none());
}

}  // namespace numsim::python
