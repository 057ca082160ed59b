#include "numsim/linear/internal/linear_saved.h"

#include "numsim/base/require.h"

namespace numsim {
namespace {

// Parts of borrowed memory begin at multiples of this within it.
constexpr size_t kAlignment = 256;

size_t RoundedUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Returns what the address of borrowed memory is a multiple of, as that of a Buffer's own is.
size_t AlignmentAt(Place place) { return place.IsHost() ? 64 : kAlignment; }

// Returns true if quantising a tensor again for its other operand gives the same codes. Not so with
// stochastic rounding, because each operand has its own random bits, or with delayed scales,
// because each operand may have its own history.
bool GivesTheSameCodes(const OperandRecipe& rows, const OperandRecipe& columns, Element element) {
  return !TakesValues(rows, element) && !rows.delayed &&
         rows.rounding.mode != RoundingMode::kStochastic && SharesCodes(rows, columns);
}

// Takes consecutive pieces of the memory that a caller lends.
class LentMemory {
 public:
  explicit LentMemory(MatrixSpan<uint8_t> memory) : memory_(memory.As(1, memory.Elements())) {}

  template <typename T>
  MatrixSpan<T> Take(size_t elements) {
    const MatrixSpan<uint8_t> piece = memory_.Columns(used_, elements * sizeof(T));
    used_ += RoundedUp(piece.Bytes());
    return {reinterpret_cast<T*>(piece.data), {1, elements}, piece.place};
  }

 private:
  MatrixSpan<uint8_t> memory_;
  size_t used_ = 0;
};

// The numbers of bytes and of float32 in the buffers of codes.
struct CodeSizes {
  size_t codes, transposed, scales, tensor_scale;

  explicit CodeSizes(const SavedPlan& plan) {
    const QuantizeOptions options = plan.Options();
    const size_t bytes = plan.shape.Elements() * static_cast<size_t>(options.format.StorageBytes());
    codes = plan.order == CodeOrder::kTransposed ? 0 : bytes;
    transposed = plan.order == CodeOrder::kInput ? 0 : bytes;
    scales = options.layout.Count(plan.shape.rows, plan.shape.cols);
    tensor_scale = TensorScaleCount(options.scale_rule, options.layout, plan.shape);
  }
};

}  // namespace

bool KeepsCodes(const LinearRecipe& recipe, Element element) {
  if (recipe.saves == LinearSaves::kQuantized) return true;
  if (recipe.x_from_codes || recipe.w_from_codes) return false;
  return TakesValues(HighPrecision(recipe.high_precision), element) &&
         GivesTheSameCodes(
             recipe[LinearOperand::kForwardX], recipe[LinearOperand::kWeightGradientX], element) &&
         GivesTheSameCodes(
             recipe[LinearOperand::kForwardW], recipe[LinearOperand::kInputGradientW], element);
}

OperandRecipe SavedRecipe(const LinearRecipe& recipe, bool keeps_codes) {
  if (keeps_codes || recipe.x_from_codes) return recipe[LinearOperand::kForwardX];
  return HighPrecision(recipe.high_precision);
}

CodeOrder OrderFor(
    const LinearRecipe& recipe, Place place, LinearOperand operand, bool rows, bool columns) {
  bool contained = recipe[GemmOf(operand)].container.has_value();
  if (operand == LinearOperand::kInputGradientG && columns) {  // read by the weight gradient
    contained = contained || recipe[LinearGemm::kWeightGradient].container.has_value();
  }
  if (place.IsHost() || contained || !columns) return CodeOrder::kInput;
  return rows ? CodeOrder::kBoth : CodeOrder::kTransposed;
}

size_t SavedPlan::Bytes() const {
  if (kind == SavedKind::kView) return 0;
  if (kind == SavedKind::kValues) return shape.Elements() * BytesOf(element, place);
  const CodeSizes sizes(*this);
  return RoundedUp(sizes.codes) + RoundedUp(sizes.transposed) +
         RoundedUp(sizes.scales * sizeof(float)) + RoundedUp(sizes.tensor_scale * sizeof(float));
}

void SavedPlan::Attach(MatrixSpan<uint8_t> memory, SavedMatrix& matrix) const {
  NUMSIM_REQUIRE(memory.place == place && memory.Contiguous() && memory.Elements() >= Bytes() &&
                     reinterpret_cast<uintptr_t>(memory.data) % AlignmentAt(place) == 0,
                 "Linear: {} bytes for a saved {} on the {}, expected {} bytes on the {}, at a "
                 "multiple of {}",
                 memory.Elements(),
                 name,
                 ToString(memory.place),
                 Bytes(),
                 ToString(place),
                 AlignmentAt(place));
  LentMemory lent(memory);
  if (kind == SavedKind::kValues) {
    matrix.values = FloatBuffer(place, element);
    matrix.values.Borrow(lent.Take<uint8_t>(Bytes()));
  }
  if (kind != SavedKind::kCodes) return;
  const CodeSizes sizes(*this);
  matrix.codes = QuantizedMatrix(place);
  matrix.codes.codes.Borrow(lent.Take<uint8_t>(sizes.codes));
  matrix.codes.transposed.Borrow(lent.Take<uint8_t>(sizes.transposed));
  matrix.codes.scales.Borrow(lent.Take<float>(sizes.scales));
  matrix.codes.tensor_scale.Borrow(lent.Take<float>(sizes.tensor_scale));
}

void SavedPlan::Prepare(SavedMatrix& matrix) const {
  matrix.name = name;
  matrix.format = recipe.format.name;
  matrix.scaled = !recipe.Unscaled();
  matrix.kind = kind;
  if (kind == SavedKind::kCodes) numsim::Prepare(place, shape, Options(), matrix.codes);
  if (kind == SavedKind::kValues) {
    matrix.values.EnsureAt(place, element);
    matrix.values.Renew(shape.rows, shape.cols);
  }
}

SavedPlans PlanSaved(const LinearRecipe& recipe, ConstFloatSpan x, ConstFloatSpan w, bool x_stays) {
  SavedPlans all;
  all.shape = {x.rows, x.cols, w.rows};
  all.keeps_codes = KeepsCodes(recipe, x.element);
  const bool shares_x =
      SharesCodes(recipe[LinearOperand::kForwardX], recipe[LinearOperand::kWeightGradientX]);
  SavedPlan& of_x = all.plans[0];
  of_x = {.name = "X",
          .recipe = SavedRecipe(recipe, all.keeps_codes),
          .shape = x.Shape(),
          .element = x.element,
          .place = x.place};
  if (TakesValues(of_x.recipe, x.element)) {
    of_x.kind = x_stays ? SavedKind::kView : SavedKind::kValues;
  } else if (of_x.recipe == recipe[LinearOperand::kForwardX]) {
    of_x.order =
        OrderFor(recipe, x.place, LinearOperand::kForwardX, true, all.keeps_codes && shares_x);
  }
  SavedPlan& of_w = all.plans[1];
  of_w = {.name = "W",
          .recipe = recipe[LinearOperand::kForwardW],
          .shape = w.Shape(),
          .order = OrderFor(recipe, x.place, LinearOperand::kForwardW, true, all.keeps_codes),
          .element = w.element,
          .place = x.place};
  if (TakesValues(of_w.recipe, w.element)) of_w.kind = SavedKind::kValues;
  return all;
}

void PrepareSaved(const SavedPlans& plans, ConstFloatSpan x, LinearSaved& saved) {
  saved.shape = plans.shape;
  saved.keeps_codes = plans.keeps_codes;
  const std::span<const SavedPlan> all = plans.All();
  saved.matrices.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) all[i].Prepare(saved.matrices[i]);
  if (all[0].kind == SavedKind::kView) saved.matrices[0].view = x;
}

}  // namespace numsim
