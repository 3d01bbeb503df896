# Cellar's build. `make run` and `make test` work on a fresh Debian 12 machine; `make help` lists
# the rest. Variants (release, debug, asan, tsan) live side by side under build/, so that changing
# from one to another rebuilds nothing.

.DEFAULT_GOAL := all
SHELL := /bin/bash
VARIANT ?= release
BUILD := build/$(VARIANT)
PREFIX ?= /usr/local
DESTDIR ?=
JOBS := $(shell nproc)
MAKEFLAGS += --no-builtin-rules

LAYERS := base btree resp engine store commands server
LIB_LAYERS := base btree engine store
PACKAGES := g++ make pkg-config libuv1-dev libmimalloc-dev libxxhash-dev libre2-dev libfmt-dev \
  libssl-dev catch2 libhiredis-dev nlohmann-json3-dev libcli11-dev libabsl-dev python3 \
  python3-redis redis-tools clang clang-format clang-tidy libclang-rt-14-dev

# ccache makes a second build of the same source free; it is used when it is there.
CCACHE := $(shell command -v ccache 2>/dev/null)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

CXX_release := g++
CXX_debug := g++
CXX_asan := clang++
CXX_tsan := clang++
CXX = $(CCACHE) $(CXX_$(VARIANT))

ARCH := $(shell uname -m)
ARCH_FLAGS := $(if $(filter x86_64,$(ARCH)),-march=x86-64-v2,)
FLAGS_release := -O2 -g
FLAGS_debug := -O0 -g -DCELLAR_DEBUG
FLAGS_asan := -O1 -g -DCELLAR_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=all \
  -fno-omit-frame-pointer
FLAGS_tsan := -O1 -g -DCELLAR_DEBUG -fsanitize=thread -fno-omit-frame-pointer
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
CXXFLAGS = -std=c++20 $(ARCH_FLAGS) $(FLAGS_$(VARIANT)) $(WARNINGS) -Isrc -Iinclude -MMD -MP
LDFLAGS = $(filter -fsanitize%,$(FLAGS_$(VARIANT)))
# mimalloc hides heap errors from the sanitizers, so only the plain builds have it.
MALLOC_LIBS = $(if $(filter release debug,$(VARIANT)),-lmimalloc,)
LIBS = -lre2 -lfmt -lssl -lcrypto -lxxhash -lpthread
UV_LIBS = -luv

SOURCES := $(foreach l,$(LAYERS),$(wildcard src/$(l)/*.cc))
LIB_SOURCES := $(foreach l,$(LIB_LAYERS),$(wildcard src/$(l)/*.cc))
APP_SOURCES := $(filter-out $(LIB_SOURCES),$(SOURCES))
OBJECTS = $(SOURCES:%.cc=$(BUILD)/%.o)
LIB_OBJECTS = $(LIB_SOURCES:%.cc=$(BUILD)/%.o)
APP_OBJECTS = $(APP_SOURCES:%.cc=$(BUILD)/%.o)
# Each folder of tools/ with a main.cc is a program named after it.
TOOLS := $(patsubst tools/%/main.cc,%,$(wildcard tools/*/main.cc))

# Tests: the files of one layer are included into one translation unit (Catch2's header is read once
# a layer), and Catch2's main is compiled once.
TEST_LAYERS := $(foreach l,$(LAYERS),$(if $(wildcard tests/$(l)/*_test.cc),$(l),))
TEST_OBJECTS = $(TEST_LAYERS:%=$(BUILD)/tests/%_tests.o) $(BUILD)/tests/catch_main.o

.PHONY: all run test unit-test deps debug asan tsan fuzz format format-check tidy check bench \
  install clean help demo FORCE

all: build/cellar $(TOOLS:%=build/%)

build/cellar: $(BUILD)/cellar
	@ln -sf $(VARIANT)/cellar $@
$(TOOLS:%=build/%): build/%: $(BUILD)/%
	@ln -sf $(VARIANT)/$* $@

$(BUILD)/libcellar.a: $(LIB_OBJECTS)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/cellar: $(BUILD)/src/main.o $(APP_OBJECTS) $(BUILD)/libcellar.a
	$(CXX) $(LDFLAGS) -o $@ $^ $(UV_LIBS) $(LIBS) $(MALLOC_LIBS)

$(BUILD)/%.o: %.cc
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) -c -o $@ $<

define TOOL_RULE
$(BUILD)/$(1): $(patsubst %.cc,$(BUILD)/%.o,$(wildcard tools/$(1)/*.cc)) $(BUILD)/libcellar.a
	$$(CXX) $$(LDFLAGS) -o $$@ $$^ -lhiredis $(UV_LIBS) $(LIBS) $$(MALLOC_LIBS)
endef
$(foreach t,$(TOOLS),$(eval $(call TOOL_RULE,$(t))))

define TEST_RULE
$(BUILD)/tests/$(1)_tests.cc: $(wildcard tests/$(1)/*_test.cc) FORCE
	@mkdir -p $$(@D)
	@printf '#include "%s"\n' $$(filter %_test.cc,$$^) | cmp -s - $$@ || printf '#include "%s"\n' $$(filter %_test.cc,$$^) > $$@
$(BUILD)/tests/$(1)_tests.o: $(BUILD)/tests/$(1)_tests.cc
	$$(CXX) $$(CXXFLAGS) -I. -c -o $$@ $$<
endef
$(foreach l,$(LAYERS),$(eval $(call TEST_RULE,$(l))))

$(BUILD)/tests/catch_main.o: tests/catch_main.cc
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) -c -o $@ $<

$(BUILD)/unit-tests: $(TEST_OBJECTS) $(APP_OBJECTS) $(BUILD)/libcellar.a
	$(CXX) $(LDFLAGS) -o $@ $^ $(UV_LIBS) $(LIBS) $(MALLOC_LIBS)

unit-test: $(BUILD)/unit-tests
	$(BUILD)/unit-tests

-include $(shell find build -name '*.d' 2>/dev/null)
