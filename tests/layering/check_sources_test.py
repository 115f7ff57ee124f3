# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_sources.py catches its breach and lets the allowed case pass."""

import unittest

import check_sources

HEAD = "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n"


def faults(path, text, head=HEAD):
    return [fault for _, fault in check_sources.check_text(path, head + text, lambda header: True)]


class Rules(unittest.TestCase):
    def refused(self, path, text, says):
        found = faults(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(says, found[0])

    def allowed(self, path, text):
        self.assertEqual(faults(path, text), [])

    def test_an_include_points_down(self):
        self.allowed("http/a.cc", '#include "net/io_executor.h"\n')
        self.allowed("engines/vllm/a.cc", '#include "http/client.h"\n')
        self.refused("common/a.cc", '#include "net/io_executor.h"\n', "common may not include net")
        self.refused("net/a.cc", '#include "http/client.h"\n', "net may not include http")
        self.refused("transports/a.cc", '#include "orchestrator/plan.h"\n', "may not include")

    def test_siblings_do_not_know_each_other(self):
        self.refused("config/a.cc", '#include "metrics/m.h"\n', "config may not include metrics")
        self.refused("ranks/a.cc", '#include "transports/t.h"\n', "ranks may not include transports")
        self.refused("engines/vllm/a.cc", '#include "engines/reference/r.h"\n', "engines/vllm may not")
        self.allowed("tools/a.cc", '#include "engines/reference/r.h"\n')

    def test_third_party_stays_behind_its_folder(self):
        for header, home, elsewhere in [("boost/asio/post.hpp", "net", "ranks"),
                                        ("boost/beast/http.hpp", "http", "engines"),
                                        ("gloo/context.h", "ranks", "transports"),
                                        ("hiredis.h", "ranks", "tools"),
                                        ("yaml-cpp/yaml.h", "config", "tools"),
                                        ("prometheus/counter.h", "metrics", "orchestrator"),
                                        ("CLI/CLI.hpp", "tools", "orchestrator")]:
            self.allowed(f"{home}/a.cc", f"#include <{header}>\n")
            self.refused(f"{elsewhere}/a.cc", f"#include <{header}>\n", "may be included only in")

    def test_the_core_is_pure(self):
        self.allowed("orchestrator/fsm/a.cc", '#include "common/names.h"\n#include <vector>\n')
        self.allowed("orchestrator/fsm/a.cc", "#include <pushrod/deadline.h>\n#include <chrono>\n")
        self.refused("orchestrator/fsm/a.cc", "#include <thread>\n", "may not use <thread>")
        self.refused("orchestrator/fsm/a.cc", "#include <boost/json.hpp>\n", "may not include <boost")
        self.refused("orchestrator/fsm/a.cc", '#include "net/io_executor.h"\n', "pure core")
        self.refused("orchestrator/fsm/a.cc", "auto t = steady_clock::now();\n", "read a clock")

    def test_only_the_composition_root_names_adapters(self):
        for header in ["ranks/meeting.h", "engines/vllm/factory.h", "transports/tcp/plane.h"]:
            self.allowed("orchestrator/factory.cc", f'#include "{header}"\n')
            self.refused("orchestrator/driver/a.cc", f'#include "{header}"\n', "may include an adapter")
        self.allowed("orchestrator/driver/a.cc", '#include "transports/chunk_plan.h"\n')

    def test_nothing_sleeps_and_no_thread_is_let_go(self):
        self.refused("net/a.cc", "std::this_thread::sleep_for(limit);\n", "no sleeping")
        self.refused("tools/a.cc", "thread.detach();\n", "detached")
        self.allowed("tools/a.cc", "// A detached view that sleeps\n")

    def test_public_headers_are_std_only(self):
        self.allowed("include/pushrod/a.h", "#include <pushrod/b.h>\n#include <string>\n")
        self.refused("include/pushrod/a.h", '#include "common/log.h"\n', "public header")
        self.refused("include/pushrod/a.h", "#include <boost/json.hpp>\n", "public header")

    def test_examples_see_what_is_installed(self):
        self.allowed("examples/x/main.cc", "#include <cstdio>\n#include <pushrod/pushrod.h>\n")
        self.refused("examples/x/main.cc", '#include "common/log.h"\n', "an example may include")

    def test_paths_begin_at_the_top(self):
        found = list(check_sources.check_text(
            "http/a.cc", HEAD + '#include "client.h"\n', lambda header: False))
        self.assertIn("not a path from the top folder", found[0][1])

    def test_form(self):
        self.assertIn("no line", faults("net/a.cc", "int a;\n", head="")[0])
        self.assertIn("no #pragma once",
                      faults("net/a.h", "int a;\n", head=HEAD.splitlines()[0] + "\n")[0])
        self.refused("net/a.cc", "// TO" + "DO: later\n", "left-over")
        self.refused("net/a.cc", "\n" * 400, "a file has fewer than 400")
        self.allowed("net/a.cc", "\n" * 396)


if __name__ == "__main__":
    unittest.main()
