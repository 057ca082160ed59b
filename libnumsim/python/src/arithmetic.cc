// Correctly rounded arithmetic and elementary functions on arrays of codes.
#include "numsim/cast/arithmetic.h"

#include <fmt/format.h>

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

Operation ParseOperation(std::string_view text) {
  std::string all;
  for (const auto& [name, op] : kOperations) {
    if (name == text) return op;
    all += fmt::format("{}, ", name);
  }
  for (const ElementaryFunction function : kElementaryFunctions) {
    if (ToString(function) == text) return function;
    all += fmt::format("{}, ", ToString(function));
  }
  throw NotOneOf("operation", text, all.substr(0, all.size() - 2));
}

ArrayOperand OperandOf(const FormatSpec& format, const Input& codes) {
  ArrayOperand operand{.format = format};
  WithCodes("arithmetic", codes, [&](auto span) { operand.codes = span; });
  return operand;
}

// Writes out[i] = op(operands[i]...). Returns the OR of all flags.
Flags Apply(std::string_view name,
            const std::vector<std::pair<FormatSpec, Input>>& operands,
            const EncodePlan& to,
            const Output& out,
            const ArrayRandom& random,
            const std::optional<OutputOf<uint8_t>>& flags) {
  const Operation operation = ParseOperation(name);
  std::array<ArrayOperand, 3> list{};
  for (size_t i = 0; i < operands.size() && i < list.size(); ++i) {
    list[i] = OperandOf(operands[i].first, operands[i].second);
  }
  const std::span<uint8_t> each = flags ? Elements(*flags) : std::span<uint8_t>();
  Flags all = 0;
  WithCodes("arithmetic", out, [&](auto codes) {
    nb::gil_scoped_release release;
    const bool wanted = flags.has_value();
    if (const auto* op = std::get_if<ArithmeticOp>(&operation)) {
      all = Arithmetic(*op, list[0], list[1], list[2], to, codes, random, wanted, each);
    } else {
      const auto function = std::get<ElementaryFunction>(operation);
      all = Elementary(function, list[0], to, codes, random, wanted, each);
    }
  });
  return all;
}

}  // namespace

void BindArithmetic(nb::module_& m) {
  m.def(
      "arithmetic",
      [](std::string_view op,
         nb::list operands,
         const EncodePlan& to,
         const Output& out,
         const ArrayRandom& random,
         const std::optional<OutputOf<uint8_t>>& flags) {
        std::vector<std::pair<FormatSpec, Input>> list;
        for (nb::handle operand : operands) {
          list.emplace_back(nb::cast<FormatSpec>(operand[0]), nb::cast<Input>(operand[1]));
        }
        return Apply(op, list, to, out, random, flags);
      },
      nb::arg("op"),
      nb::arg("operands"),
      nb::arg("to"),
      nb::arg("out").noconvert(),
      nb::arg("random") = ArrayRandom(),
      nb::arg("flags").noconvert() = nb::none());
}

}  // namespace numsim::python
