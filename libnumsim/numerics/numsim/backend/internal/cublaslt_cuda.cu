// Forwarders for the cuBLASLt functions that numsim calls. The first call of any of them loads the
// library; it throws Error if the library cannot be loaded.
//
// Linking with cuBLASLt would cost every program 70 ms at its start and half a gigabyte of address
// space. Few programs call it, yet none would start on a machine without it. The forwarders replace
// the library's functions at link time, so a function that is used but not listed here is an
// undefined symbol.
#pragma GCC visibility push(hidden)  // other libraries of the process must not bind to these
#include <cublasLt.h>
#pragma GCC visibility pop
#include <dlfcn.h>
#include <glob.h>

#include <filesystem>
#include <string>
#include <vector>

#include "numsim/base/error.h"

namespace {

// Returns where pip puts cuBLASLt, which PyTorch brings and `pip install numsim[cuda]` too, if this is a
// module of a Python package or a program beside the interpreter: patterns of glob(3).
std::vector<std::string> InstalledPatterns(const std::string& name) {
  namespace fs = std::filesystem;
  Dl_info self{};
  dladdr(reinterpret_cast<const void*>(&InstalledPatterns), &self);
  std::error_code none;
  const fs::path packages =
      fs::path(self.dli_fname == nullptr ? "" : self.dli_fname).parent_path().parent_path();
  const fs::path program = fs::read_symlink("/proc/self/exe", none).parent_path();
  std::vector<std::string> patterns;
  for (const fs::path& folder : {packages, program / "../lib/python3*/site-packages"}) {
    for (const char* package : {"nvidia/cu[0-9]*/lib", "nvidia/cublas/lib"}) {
      patterns.push_back((folder / package / name).string());
    }
  }
  return patterns;
}

void* Open(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

// Returns the handle of the first file that matches and can be loaded, else nullptr.
void* OpenMatching(const std::string& pattern) {
  glob_t matches{};
  void* found = nullptr;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (size_t i = 0; i < matches.gl_pathc && found == nullptr; ++i) {
      found = Open(matches.gl_pathv[i]);
    }
  }
  globfree(&matches);
  return found;
}

// Returns the handle of the major version of cuBLASLt that the calls are written for. Takes the one that
// the process has, else looks in the loader's search path, where pip installs it and in the CUDA toolkit
// of this build.
void* Library() {
  static void* const library = [] {
    const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
    void* found = Open(name);
    const std::string reason = found == nullptr ? dlerror() : "";
    for (const std::string& pattern : InstalledPatterns(name)) {
      if (found == nullptr) found = OpenMatching(pattern);
    }
    if (found == nullptr) found = Open(fmt::format("{}/{}", NUMSIM_CUDA_LIBRARY_DIR, name));
    if (found == nullptr) {
      throw numsim::Error::Format(
          "cuBLASLt cannot be loaded: {}; pip install 'numsim[cuda]' or PyTorch brings it", reason);
    }
    return found;
  }();
  return library;
}

template <typename Function>
Function* Loaded(Function&, const char* name) {
  void* const address = dlsym(Library(), name);
  if (address == nullptr) throw numsim::Error::Format("cuBLASLt has no {}", name);
  return reinterpret_cast<Function*>(address);
}

}  // namespace

// FORWARD(result type, function, (parameters), arguments)
#define FORWARD(Result, function, parameters, ...)          \
  Result CUBLASWINAPI function parameters {                 \
    static const auto loaded = Loaded(function, #function); \
    return loaded(__VA_ARGS__);                             \
  }

FORWARD(size_t, cublasLtGetVersion, ())
FORWARD(const char*, cublasLtGetStatusString, (cublasStatus_t status), status)
FORWARD(const char*, cublasLtGetStatusName, (cublasStatus_t status), status)
FORWARD(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), handle)
FORWARD(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle), handle)

FORWARD(cublasStatus_t,
        cublasLtMatrixLayoutCreate,
        (cublasLtMatrixLayout_t * layout,
         cudaDataType type,
         uint64_t rows,
         uint64_t columns,
         int64_t ld),
        layout,
        type,
        rows,
        columns,
        ld)
FORWARD(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout), layout)
FORWARD(cublasStatus_t,
        cublasLtMatrixLayoutSetAttribute,
        (cublasLtMatrixLayout_t layout,
         cublasLtMatrixLayoutAttribute_t attribute,
         const void* value,
         size_t bytes),
        layout,
        attribute,
        value,
        bytes)

FORWARD(cublasStatus_t,
        cublasLtMatmulDescCreate,
        (cublasLtMatmulDesc_t * matmul, cublasComputeType_t compute, cudaDataType_t scale),
        matmul,
        compute,
        scale)
FORWARD(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t matmul), matmul)
FORWARD(cublasStatus_t,
        cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t matmul,
         cublasLtMatmulDescAttributes_t attribute,
         const void* value,
         size_t bytes),
        matmul,
        attribute,
        value,
        bytes)

FORWARD(cublasStatus_t,
        cublasLtMatmulPreferenceCreate,
        (cublasLtMatmulPreference_t * preference),
        preference)
FORWARD(cublasStatus_t,
        cublasLtMatmulPreferenceDestroy,
        (cublasLtMatmulPreference_t preference),
        preference)
FORWARD(cublasStatus_t,
        cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t preference,
         cublasLtMatmulPreferenceAttributes_t attribute,
         const void* value,
         size_t bytes),
        preference,
        attribute,
        value,
        bytes)

FORWARD(cublasStatus_t,
        cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t handle,
         cublasLtMatmulDesc_t matmul,
         cublasLtMatrixLayout_t a,
         cublasLtMatrixLayout_t b,
         cublasLtMatrixLayout_t c,
         cublasLtMatrixLayout_t d,
         cublasLtMatmulPreference_t preference,
         int wanted,
         cublasLtMatmulHeuristicResult_t* results,
         int* found),
        handle,
        matmul,
        a,
        b,
        c,
        d,
        preference,
        wanted,
        results,
        found)
FORWARD(cublasStatus_t,
        cublasLtMatmulAlgoConfigGetAttribute,
        (const cublasLtMatmulAlgo_t* algorithm,
         cublasLtMatmulAlgoConfigAttributes_t attribute,
         void* value,
         size_t bytes,
         size_t* written),
        algorithm,
        attribute,
        value,
        bytes,
        written)
FORWARD(cublasStatus_t,
        cublasLtMatmulAlgoConfigSetAttribute,
        (cublasLtMatmulAlgo_t * algorithm,
         cublasLtMatmulAlgoConfigAttributes_t attribute,
         const void* value,
         size_t bytes),
        algorithm,
        attribute,
        value,
        bytes)
FORWARD(cublasStatus_t,
        cublasLtMatmulAlgoCheck,
        (cublasLtHandle_t handle,
         cublasLtMatmulDesc_t matmul,
         cublasLtMatrixLayout_t a,
         cublasLtMatrixLayout_t b,
         cublasLtMatrixLayout_t c,
         cublasLtMatrixLayout_t d,
         const cublasLtMatmulAlgo_t* algorithm,
         cublasLtMatmulHeuristicResult_t* result),
        handle,
        matmul,
        a,
        b,
        c,
        d,
        algorithm,
        result)
FORWARD(cublasStatus_t,
        cublasLtMatmul,
        (cublasLtHandle_t handle,
         cublasLtMatmulDesc_t matmul,
         const void* alpha,
         const void* a,
         cublasLtMatrixLayout_t a_layout,
         const void* b,
         cublasLtMatrixLayout_t b_layout,
         const void* beta,
         const void* c,
         cublasLtMatrixLayout_t c_layout,
         void* d,
         cublasLtMatrixLayout_t d_layout,
         const cublasLtMatmulAlgo_t* algorithm,
         void* workspace,
         size_t workspace_bytes,
         cudaStream_t stream),
        handle,
        matmul,
        alpha,
        a,
        a_layout,
        b,
        b_layout,
        beta,
        c,
        c_layout,
        d,
        d_layout,
        algorithm,
        workspace,
        workspace_bytes,
        stream)
