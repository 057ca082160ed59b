// The extension module numsim._core: errors, build information, threads and backends.
#include "libnumsim/python/src/bindings.h"
#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/parallel.h"

namespace numsim::python {

NB_MODULE(_core, m) {
  m.doc() = "The calls of the C++ library on contiguous arrays. Use the package numsim instead.";
  // A graph of PyTorch that still exists when Python ends keeps its layers, which is no mistake.
  nb::set_leak_warnings(false);
  nb::exception<Error>(m, "Error", PyExc_ValueError);

  m.def("build_version", &BuildVersion);
  m.def("build_commit", &BuildCommit);
  m.def("build_compiler", &BuildCompiler);
  m.def("build_type", &BuildType);
  m.def("thread_count", &ThreadCount);
  m.def("set_thread_count", &SetThreadCount, nb::arg("threads"));
  // These wait for calls of other threads, which may need the interpreter before they end.
  m.def("available_backends", &AvailableBackends, nb::call_guard<nb::gil_scoped_release>());
  m.def("force_backend", &ForceBackend, nb::arg("name"), nb::call_guard<nb::gil_scoped_release>());
  m.def("force_backend_from_environment", &ForceBackendFromEnvironment);
  m.def("backend", [] {
    const ArrayCall call;
    return std::string(BackendName());
  });
  // To be called in a forked process, which has one thread.
  m.def("enter_forked_process", [] {
    BackendCall::ForgetOtherThreads();
    SetThreadCount(1);
  });
  m.def("nearest_name", &NearestName, nb::arg("wrong"), nb::arg("names"));

  BindDevice(m);  // before the calls that take a context
  BindFormats(m);
  BindCasts(m);
  BindArithmetic(m);
  BindQuantize(m);
  BindGemm(m);
  BindLinear(m);
  BindUpdates(m);
  BindMeasures(m);
  BindMoments(m);
  BindOptimizer(m);
  BindProfiles(m);
  BindOracle(m);
  BindTraining(m);
}

}  // namespace numsim::python
