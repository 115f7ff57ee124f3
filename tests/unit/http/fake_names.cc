// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/http/fake_names.h"

#include <condition_variable>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <netdb.h>

namespace pushrod::http::test {
namespace {

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = true;
};

Gate& gate() {
  static Gate only;
  return only;
}

using Lookup = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

Lookup systemLookup() {
  return reinterpret_cast<Lookup>(::dlsym(RTLD_NEXT, "getaddrinfo"));
}

void setGate(bool open) {
  const std::lock_guard lock(gate().mutex);
  gate().open = open;
  gate().changed.notify_all();
}

}  // namespace

void releaseHangingName() {
  setGate(true);
}

void holdHangingName() {
  setGate(false);
}

int lookUp(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
  const Lookup system = systemLookup();
  if (name == nullptr || std::strstr(name, ".test") == nullptr) {
    return system(name, service, hints, result);
  }
  if (std::strcmp(name, "hang.test") == 0) {
    std::unique_lock lock(gate().mutex);
    gate().changed.wait(lock, [] { return gate().open; });
    return system("127.0.0.1", service, hints, result);
  }
  if (std::strcmp(name, "both.test") == 0) {
    addrinfo plain = *hints;
    plain.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* second = nullptr;
    const int failed = system("::1", service, &plain, result);
    if (failed != 0 || system("127.0.0.1", service, &plain, &second) != 0) {
      return EAI_FAIL;
    }
    (*result)->ai_next = second;
    return 0;
  }
  return EAI_NONAME;
}

}  // namespace pushrod::http::test

extern "C" int getaddrinfo(const char* name,
                           const char* service,
                           const addrinfo* hints,
                           addrinfo** result) {
  return pushrod::http::test::lookUp(name, service, hints, result);
}
