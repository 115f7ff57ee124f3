# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_sources.py catches its breach and lets the allowed case pass."""

import pathlib
import unittest

import check_sources
import cpp_text
import waits

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

    def test_every_wait_has_a_limit(self):
        for line in ["changed_.wait(lock);", "changed_.wait(lock, [&] { return done; });",
                     "future->wait();", "thread_.join();", "slots.acquire();",
                     "::poll(entries, 2, -1);", "::waitpid(pid, &status, 0);",
                     "epoll_wait(epoll, events,\n  64, -1);"]:
            self.refused("net/a.cc", f"void f() {{\n  {line}\n}}\n", "without a limit")
        for line in ["changed_.wait_for(lock, kLimit);", "pause.wait(interrupt, deadline);",
                     "receiver_.join(*info, rank);", "::poll(entries, 2, milliseconds);",
                     "::waitpid(pid, &status, WNOHANG);", "// thread_.join();",
                     'log("thread_.join()");']:
            self.allowed("net/a.cc", f"void f() {{\n  {line}\n}}\n")
        self.refused("tools/a.cc", "auto a = std::async(work);\n", "waits without a limit")
        self.allowed("tests/a.cc", "thread_.join();\n")

    def test_a_future_is_read_after_a_wait_with_a_limit(self):
        declared = "std::future<int> answer = promise.get_future();\n"
        waited = "if (answer.wait_for(limit) != std::future_status::ready) {}\n"
        self.refused("net/a.cc", declared + "return answer.get();\n", "get() of a future")
        self.refused("net/a.cc", waited + declared + "return answer.get();\n", "get() of a future")
        self.refused("net/a.cc", "return promise.get_future().get();\n", "get() of a future")
        self.allowed("net/a.cc", declared + waited + "return answer.get();\n")
        self.allowed("net/a.cc", "std::unique_ptr<int> answer;\nreturn answer.get();\n")

    def test_a_listed_wait_is_allowed_where_it_is_listed(self):
        self.allowed("net/io_executor.cc", "thread_.join();\n")
        self.refused("net/io_executor.cc", "other_.join();\n", "without a limit")

    def test_a_listed_wait_that_is_gone_is_a_fault(self):
        nowhere = pathlib.Path("/nonexistent")
        self.assertEqual(len(list(waits.unused(nowhere))), len(waits.ALLOWED))

    def test_functions_are_short(self):
        for head, foot in [("void f() {\n", "}\n"), ("Type A::f(int a) const noexcept {\n", "}\n"),
                           ("A::A(int a) : a_(a), b_{1} {\n", "}\n"),
                           ("class A {\n  int f() {\n", "  }\n};\n"),
                           ("auto f() -> std::vector<int> {\n", "}\n"), ("TEST(A, B) {\n", "}\n"),
                           ("const Row kRow{1, [](int a) {\n", "}};\n")]:
            lines = head.count("{\n") - head.count("class")
            self.allowed("tests/a.cc", head + "  a();\n" * (59 - lines) + foot)
            self.refused("tests/a.cc", head + "  a();\n" * 59 + foot, "a function of 61 lines")

    def test_what_is_no_function_may_be_long(self):
        body = "  int a;\n" * 100
        for head, foot in [("namespace a {\n", "}\n"), ("struct A {\n", "};\n"),
                           ("class A final : public B<int()> {\n", "};\n"),
                           ("const int kRows[] = {\n", "};\n")]:
            self.allowed("tests/a.cc", head + body + foot)

    def test_python_functions_are_short(self):
        head = "# SPDX-License-Identifier: Apache-2.0\ndef f():\n"
        self.assertEqual(faults("tests/a.py", head + "    pass\n" * 59, head=""), [])
        self.assertIn("a function of 61 lines", faults("tests/a.py", head + "    pass\n" * 60, head="")[0])


class Text(unittest.TestCase):
    def test_what_is_not_code_is_blanked_in_place(self):
        text = 'a("}"); // {\nb(\'{\', R"x({")x", 1\'000);\n#define C {\\\n{\n/* {\n*/ d();\n'
        code = cpp_text.code_only(text)
        self.assertEqual(len(code), len(text))
        self.assertEqual(code.count("\n"), text.count("\n"))
        self.assertNotIn("{", code)
        self.assertIn("1'000", code)
        self.assertIn("d();", code)


if __name__ == "__main__":
    unittest.main()
