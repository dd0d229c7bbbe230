// What an unstripped Go program says of itself by its symbols and its DWARF, as JSON on standard output: the truth that
// tests/go/run holds the daemon's reader against, which uses neither.
//
//	truth FILE STRUCT...
//
// prints {"functions": {ADDRESS: [NAME...]}, "structs": {STRUCT: {FIELD: OFFSET}}}.
package main

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type truth struct {
	Functions map[uint64][]string         `json:"functions"`
	Structs   map[string]map[string]int64 `json:"structs"`
}

// Symbols of assembler functions and wrappers have a suffix that the function table has not.
func plainName(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".abi0"), ".abiinternal")
}

func readFunctions(file *elf.File) (map[uint64][]string, error) {
	symbols, err := file.Symbols()
	if err != nil {
		return nil, err
	}
	functions := map[uint64][]string{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			functions[s.Value] = append(functions[s.Value], plainName(s.Name))
		}
	}
	return functions, nil
}

func readStructs(file *elf.File, names []string) (map[string]map[string]int64, error) {
	data, err := file.DWARF()
	if err != nil {
		return nil, err
	}
	structs := map[string]map[string]int64{}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for reader := data.Reader(); ; {
		entry, err := reader.Next()
		if err != nil || entry == nil {
			return structs, err
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		if entry.Tag != dwarf.TagStructType || !wanted[name] {
			if entry.Tag != dwarf.TagCompileUnit {
				reader.SkipChildren()
			}
			continue
		}
		fields := map[string]int64{}
		for {
			member, err := reader.Next()
			if err != nil {
				return nil, err
			}
			if member == nil || member.Tag == 0 {
				break
			}
			field, _ := member.Val(dwarf.AttrName).(string)
			offset, _ := member.Val(dwarf.AttrDataMemberLoc).(int64)
			fields[field] = offset
		}
		structs[name] = fields
	}
}

func run(path string, names []string) error {
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var t truth
	if t.Functions, err = readFunctions(file); err != nil {
		return err
	}
	if t.Structs, err = readStructs(file, names); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
