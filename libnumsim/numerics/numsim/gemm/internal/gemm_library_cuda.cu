#include <cublasLt.h>
#include <fmt/format.h>

#include <array>
#include <compare>
#include <map>
#include <optional>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/gemm/internal/gemm_library_device.h"
#include "numsim/gemm/internal/gemm_prepare_device.h"

// cuBLASLt has one scale per row since CUDA 12.9.
#if CUBLAS_VERSION >= 120900
#define NUMSIM_LIBRARY_SCALES_ROWS true
#else
#define NUMSIM_LIBRARY_SCALES_ROWS false
#endif

namespace numsim::cuda {
namespace {

constexpr size_t kWorkspace = size_t{64} << 20;
constexpr int kCandidates = 16;

enum class ScaleKind : uint8_t { kNone, kTensor, kRows };

// Everything that the choice of an algorithm depends on. cuBLASLt's matrices are column-major: its
// result D = (A B^T)^T has b.rows rows, and its first operand is our b.
struct Problem {
  cudaDataType_t type_a, type_b, type_out;
  size_t rows_a, rows_b, inner;
  size_t length, parts;  // what is multiplied of `inner`: equal parts of a length
  bool transposed_a, transposed_b;
  bool fast_accumulation, ordered;
  int split;
  LibraryReduction reduction;
  ScaleKind scales_a, scales_b;
  uint32_t alignment_a, alignment_b, alignment_out;

  auto operator<=>(const Problem&) const = default;

  std::string Text() const {
    const std::string text = fmt::format("{} x {} times {} x {}", rows_a, inner, inner, rows_b);
    return length == inner ? text : fmt::format("{}, {} parts of {}", text, parts, length);
  }
};

void Check(cublasStatus_t status, const char* call, const Problem& problem) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error::Format("{}, {}: {}", call, problem.Text(), cublasLtGetStatusString(status));
}

cudaDataType_t TypeOf(const FormatSpec& format) {
  if (format == kInt8) return CUDA_R_8I;
  if (format == kE4M3fn) return CUDA_R_8F_E4M3;
  if (format == kE5M2) return CUDA_R_8F_E5M2;
  if (format == kFp16) return CUDA_R_16F;
  NUMSIM_CHECK(format == kBf16, "a format of {} bits", format.Bits());
  return CUDA_R_16BF;
}

cudaDataType_t TypeOf(LibraryResult result) {
  constexpr std::array kTypes = {CUDA_R_32I, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F};
  return kTypes[static_cast<size_t>(result)];
}

uint32_t SchemeOf(LibraryReduction reduction) {
  constexpr std::array<uint32_t, 4> kSchemes = {CUBLASLT_REDUCTION_SCHEME_NONE,
                                                CUBLASLT_REDUCTION_SCHEME_INPLACE,
                                                CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                                                CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE};
  return kSchemes[static_cast<size_t>(reduction)];
}

ScaleKind KindOf(const GemmOperand& x, const LibraryOptions& options) {
  if (!options.scales || ScalesOfRows(x) == 0) return ScaleKind::kNone;
  return ScalesOfRows(x) == 1 ? ScaleKind::kTensor : ScaleKind::kRows;
}

// Returns 256, which is cuBLASLt's default assumption, or 16: the alignment of all parts, which begin
// `stride` bytes after each other.
uint32_t AlignmentOf(const void* pointer, size_t stride) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  NUMSIM_CHECK(address % 16 == 0 && stride % 16 == 0, "an address {:#x} + {}", address, stride);
  return address % 256 == 0 && stride % 256 == 0 ? 256 : 16;
}

// Returns the elements from product 0 of a vector to product `k`.
size_t Distance(const GemmOperand& x, size_t k) { return x.transposed ? k * x.rows : k; }

size_t DistanceBytes(const GemmOperand& x, size_t k) {
  return Distance(x, k) * static_cast<size_t>(x.format.StorageBytes());
}

// Returns the address of the operand's first element that is multiplied.
const void* FirstOf(const GemmOperand& x, const InnerParts& parts) {
  return static_cast<const uint8_t*>(x.data()) + DistanceBytes(x, parts.first);
}

// Returns the parts that are multiplied: at least one.
InnerParts PartsOf(const GemmOperand& a, const LibraryOptions& options) {
  return options.parts.length == 0 ? InnerParts{.length = a.inner} : options.parts;
}

Problem ProblemOf(const GemmOperand& a,
                  const GemmOperand& b,
                  const LibraryOptions& options,
                  const void* out) {
  const InnerParts parts = PartsOf(a, options);
  // From one part to the next; a single one has none.
  const auto stride = [&](size_t bytes) { return parts.count > 1 ? bytes : 0; };
  return {.type_a = TypeOf(a.format),
          .type_b = TypeOf(b.format),
          .type_out = TypeOf(options.result),
          .rows_a = a.rows,
          .rows_b = b.rows,
          .inner = a.inner,
          .length = parts.length,
          .parts = parts.count,
          .transposed_a = a.transposed,
          .transposed_b = b.transposed,
          .fast_accumulation = options.fast_accumulation,
          .ordered = options.ordered,
          .split = options.split,
          .reduction = options.reduction,
          .scales_a = KindOf(a, options),
          .scales_b = KindOf(b, options),
          .alignment_a = AlignmentOf(FirstOf(a, parts), stride(DistanceBytes(a, parts.length))),
          .alignment_b = AlignmentOf(FirstOf(b, parts), stride(DistanceBytes(b, parts.length))),
          .alignment_out = AlignmentOf(out, stride(a.rows * b.rows * BytesOf(options.result)))};
}

// Owns an object of the library, which a function Create... made and Destroy destroys.
template <typename Handle, cublasStatus_t (*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (handle_ != nullptr) Destroy(handle_);
  }
  Handle get() const { return handle_; }
  Handle* address() { return &handle_; }

 private:
  Handle handle_ = nullptr;
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// A problem in cuBLASLt's terms; its first operand is our b.
struct Plan {
  Operation operation;
  Layout first, second, out;
  std::optional<cublasLtMatmulAlgo_t> algorithm;  // empty: cuBLASLt cannot compute the problem
};

template <typename T>
void SetOperation(const Plan& plan,
                  cublasLtMatmulDescAttributes_t attribute,
                  const T& value,
                  const Problem& problem) {
  Check(cublasLtMatmulDescSetAttribute(plan.operation.get(), attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute",
        problem);
}

// The matrix `rows` x `inner`, or its transpose if `transposed`, row-major, with `pitch` elements from
// one row of memory to the next; `parts` of them, `part_stride` elements apart.
struct LibraryMatrix {
  size_t rows, inner, pitch;
  bool transposed;
  size_t parts, part_stride;
};

// Returns the parts of an operand that are multiplied.
LibraryMatrix MatrixOf(const GemmOperand& x, const Problem& p) {
  return {.rows = x.rows,
          .inner = p.length,
          .pitch = x.Stored().cols,
          .transposed = x.transposed,
          .parts = p.parts,
          .part_stride = Distance(x, p.length)};
}

void MakeLayout(Layout& layout,
                cudaDataType_t type,
                const LibraryMatrix& m,
                const Problem& problem) {
  const size_t contiguous = m.transposed ? m.rows : m.inner;
  const size_t other = m.transposed ? m.inner : m.rows;
  Check(cublasLtMatrixLayoutCreate(
            layout.address(), type, contiguous, other, static_cast<int64_t>(m.pitch)),
        "cublasLtMatrixLayoutCreate",
        problem);
  if (m.parts == 1) return;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    Check(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute",
          problem);
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(m.parts));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, static_cast<int64_t>(m.part_stride));
}

void SetScales(const Plan& plan,
               const Problem& problem,
               const GemmOperand& a,
               const GemmOperand& b) {
  const auto set = [&](ScaleKind kind, auto pointer, auto mode, const float* scales) {
    if (kind == ScaleKind::kNone) return;
    SetOperation(plan, pointer, static_cast<const void*>(scales), problem);
#if NUMSIM_LIBRARY_SCALES_ROWS
    const int32_t value = kind == ScaleKind::kRows ? CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
                                                   : CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
    SetOperation(plan, mode, value, problem);
#else
    static_cast<void>(mode);
#endif
  };
#if NUMSIM_LIBRARY_SCALES_ROWS
  constexpr auto kModeA = CUBLASLT_MATMUL_DESC_A_SCALE_MODE;
  constexpr auto kModeB = CUBLASLT_MATMUL_DESC_B_SCALE_MODE;
#else
  constexpr int kModeA = 0, kModeB = 0;
#endif
  set(problem.scales_b, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, kModeA, b.scales.data.data);
  set(problem.scales_a, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, kModeB, a.scales.data.data);
}

void DescribeProblem(Plan& plan, const Problem& p, const GemmOperand& a, const GemmOperand& b) {
  const bool integers = p.type_out == CUDA_R_32I;
  Check(cublasLtMatmulDescCreate(plan.operation.address(),
                                 integers ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                                 integers ? CUDA_R_32I : CUDA_R_32F),
        "cublasLtMatmulDescCreate",
        p);
  const cublasOperation_t first = p.transposed_b ? CUBLAS_OP_N : CUBLAS_OP_T;
  const cublasOperation_t second = p.transposed_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  SetOperation(plan, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(first), p);
  SetOperation(plan, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(second), p);
  if (p.fast_accumulation) {
    SetOperation(plan, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1}, p);
  }
  SetScales(plan, p, a, b);
  MakeLayout(plan.first, p.type_b, MatrixOf(b, p), p);
  MakeLayout(plan.second, p.type_a, MatrixOf(a, p), p);
  const LibraryMatrix out = {p.rows_a, p.rows_b, p.rows_b, false, p.parts, p.rows_a * p.rows_b};
  MakeLayout(plan.out, p.type_out, out, p);
}

template <typename T>
void SetPreference(const Preference& preference,
                   cublasLtMatmulPreferenceAttributes_t attribute,
                   const T& value,
                   const Problem& p) {
  Check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute",
        p);
}

template <typename T>
T Configured(const cublasLtMatmulAlgo_t& algorithm,
             cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  return value;
}

bool IsOrdered(const cublasLtMatmulAlgo_t& algorithm) {
  return Configured<int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) <= 1 &&
         Configured<uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) ==
             CUBLASLT_REDUCTION_SCHEME_NONE;
}

// Makes `algorithm` split the inner dimension as the problem says. Returns false if it cannot.
bool Split(cublasLtHandle_t handle,
           const Plan& plan,
           const Problem& p,
           cublasLtMatmulAlgo_t& algorithm) {
  const auto set = [&](auto attribute, auto value) {
    return cublasLtMatmulAlgoConfigSetAttribute(&algorithm, attribute, &value, sizeof value) ==
           CUBLAS_STATUS_SUCCESS;
  };
  cublasLtMatmulHeuristicResult_t checked{};
  return set(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, static_cast<int32_t>(p.split)) &&
         set(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, SchemeOf(p.reduction)) &&
         cublasLtMatmulAlgoCheck(handle,
                                 plan.operation.get(),
                                 plan.first.get(),
                                 plan.second.get(),
                                 plan.out.get(),
                                 plan.out.get(),
                                 &algorithm,
                                 &checked) == CUBLAS_STATUS_SUCCESS &&
         checked.workspaceSize <= kWorkspace;
}

void Choose(cublasLtHandle_t handle, Plan& plan, const Problem& p) {
  Preference preference;
  Check(cublasLtMatmulPreferenceCreate(preference.address()), "cublasLtMatmulPreferenceCreate", p);
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspace}, p);
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.alignment_b, p);
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.alignment_a, p);
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.alignment_out, p);
  SetPreference(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.alignment_out, p);
  if (p.ordered) {
    const uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE;
    SetPreference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, none, p);
  }
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle,
                                                               plan.operation.get(),
                                                               plan.first.get(),
                                                               plan.second.get(),
                                                               plan.out.get(),
                                                               plan.out.get(),
                                                               preference.get(),
                                                               kCandidates,
                                                               found.data(),
                                                               &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return;
  Check(status, "cublasLtMatmulAlgoGetHeuristic", p);
  for (int i = 0; i < count; ++i) {
    cublasLtMatmulAlgo_t algorithm = found[i].algo;
    if (found[i].state != CUBLAS_STATUS_SUCCESS || found[i].workspaceSize > kWorkspace) continue;
    if (p.ordered && !IsOrdered(algorithm)) continue;
    if (!p.ordered && p.split > 0 && !Split(handle, plan, p, algorithm)) continue;
    plan.algorithm = algorithm;
    return;
  }
}

}  // namespace

struct DeviceLibrary::State {
  Owned<cublasLtHandle_t, cublasLtDestroy> handle;
  explicit State(Place place) : workspace(place, kWorkspace) {}

  Buffer<uint8_t> workspace;
  std::map<Problem, Plan> plans;

  const Plan& PlanOf(const Problem& problem, const GemmOperand& a, const GemmOperand& b) {
    const auto at = plans.find(problem);
    if (at != plans.end()) return at->second;
    Plan plan;
    DescribeProblem(plan, problem, a, b);
    Choose(handle.get(), plan, problem);
    return plans.emplace(problem, std::move(plan)).first->second;
  }
};

DeviceLibrary::DeviceLibrary(Place place) : place_(place) {}
DeviceLibrary::~DeviceLibrary() = default;

DeviceLibrary::State& DeviceLibrary::Ready() {
  if (state_ == nullptr) {
    auto state = std::make_unique<State>(place_);
    Check(cublasLtCreate(state->handle.address()), "cublasLtCreate", Problem{});
    state_ = std::move(state);
  }
  return *state_;
}

bool DeviceLibrary::Multiply(const GemmOperand& a,
                             const GemmOperand& b,
                             const LibraryOptions& options,
                             void* out,
                             DeviceStream& stream) {
  State& state = Ready();
  const Problem problem = ProblemOf(a, b, options, out);
#if !NUMSIM_LIBRARY_SCALES_ROWS
  if (problem.scales_a == ScaleKind::kRows || problem.scales_b == ScaleKind::kRows) return false;
#endif
  const Plan& plan = state.PlanOf(problem, a, b);
  if (!plan.algorithm) return false;
  SetScales(plan, problem, a, b);
  const InnerParts parts = PartsOf(a, options);
  const bool integers = problem.type_out == CUDA_R_32I;
  const int32_t integer_one = 1, integer_zero = 0;
  const float one = 1, zero = 0;
  Check(cublasLtMatmul(state.handle.get(),
                       plan.operation.get(),
                       integers ? static_cast<const void*>(&integer_one) : &one,
                       FirstOf(b, parts),
                       plan.first.get(),
                       FirstOf(a, parts),
                       plan.second.get(),
                       integers ? static_cast<const void*>(&integer_zero) : &zero,
                       out,
                       plan.out.get(),
                       out,
                       plan.out.get(),
                       &*plan.algorithm,
                       state.workspace.View().data,
                       kWorkspace,
                       Raw(stream)),
        "cublasLtMatmul",
        problem);
  return true;
}

std::string DeviceLibrary::Describe(const GemmOperand& a,
                                    const GemmOperand& b,
                                    const LibraryOptions& options,
                                    void* out) {
  const Plan& plan = Ready().PlanOf(ProblemOf(a, b, options, out), a, b);
  if (!plan.algorithm) return "none";
  const cublasLtMatmulAlgo_t& x = *plan.algorithm;
  return fmt::format("algorithm {} tile {} stages {} cluster {} option {} split {} reduction {}",
                     Configured<int32_t>(x, CUBLASLT_ALGO_CONFIG_ID),
                     Configured<uint32_t>(x, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     Configured<uint32_t>(x, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     Configured<uint16_t>(x, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                     Configured<uint32_t>(x, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
                     Configured<int32_t>(x, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                     Configured<uint32_t>(x, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME));
}

}  // namespace numsim::cuda

const char* numsim::DeviceGemmLibrary() {
  static const std::string name = [] {
    const size_t version = cublasLtGetVersion();
    return fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }();
  return name.c_str();
}
