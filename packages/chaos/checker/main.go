// Checks a history of locks with Porcupine, a checker of linearizability.
//
//	checker FILE
//
// A history is a line of JSON per operation; see docs/faults.md. Prints a line of JSON per lock and model, and ends with 1 where something did not
// hold, with 2 where the history cannot be read.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

// An operation of a client, on one clock that all clients read, in milliseconds.
type operation struct {
	Op   string `json:"op"`
	Lock string `json:"lock"`
	// Which holding it begins, ends, or writes for.
	Hold    string   `json:"hold,omitempty"`
	Process any      `json:"process,omitempty"`
	Token   int64    `json:"token,string,omitempty"`
	Call    float64  `json:"call"`
	Return  *float64 `json:"return,omitempty"`
	Outcome string   `json:"outcome,omitempty"`
	// Of "acquire" and "release": whether others may hold it meanwhile whose hold is shared, too.
	Shared bool `json:"shared,omitempty"`
	// Of "write": the version that it replaces, and what it adds to a set.
	Version *int   `json:"version,omitempty"`
	Element string `json:"element,omitempty"`
	// Of "read": what was in the set.
	Elements []string `json:"elements,omitempty"`
	// Of "lock": how many may hold it at once.
	Permits int `json:"permits,omitempty"`
}

type verdict struct {
	Lock       string `json:"lock"`
	Model      string `json:"model"`
	Holdings   int    `json:"holdings"`
	Refused    int    `json:"refused"`
	Anomalies  int    `json:"anomalies"`
	Undecided  int    `json:"undecided"`
	FirstShort any    `json:"first,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fail("usage: checker FILE")
	}
	history, err := read(os.Args[1])
	if err != nil {
		fail(err.Error())
	}
	permits := map[string]int{}
	operations := map[string][]operation{}
	for _, op := range history {
		if op.Op == "lock" {
			permits[op.Lock] = op.Permits
		} else {
			operations[op.Lock] = append(operations[op.Lock], op)
		}
	}
	locks := make([]string, 0, len(operations))
	for lock := range operations {
		locks = append(locks, lock)
	}
	sort.Strings(locks)
	status := 0
	for _, lock := range locks {
		holdings, refused := holdingsOf(operations[lock])
		say := func(v verdict, first []holding) {
			v.Lock, v.Holdings, v.Refused = lock, len(holdings), refused
			if v.Anomalies > 0 {
				v.FirstShort = first
			}
			if v.Anomalies+v.Undecided > 0 {
				status = 1
			}
			line, _ := json.Marshal(v)
			fmt.Println(string(line))
		}
		models := []model{mutex}
		if n := permits[lock]; n > 1 {
			models = []model{semaphore(n)}
		}
		if hasTokens(holdings) {
			models = append(models, fenced)
		}
		if hasVersions(holdings) {
			models = append(models, register)
		}
		for _, m := range models {
			count, undecided, first := anomalies(m, holdings)
			say(verdict{Model: m.name, Anomalies: count, Undecided: undecided}, first)
		}
		if reads := readsOf(operations[lock]); len(reads) > 0 {
			count, first := missing(holdings, reads)
			say(verdict{Model: "set", Anomalies: count}, first)
		}
	}
	os.Exit(status)
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}

func read(path string) ([]operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var history []operation
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for number := 1; scanner.Scan(); number++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var op operation
		if err := json.Unmarshal(scanner.Bytes(), &op); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		switch op.Op {
		case "lock", "read":
			if op.Lock == "" || op.Op == "read" && op.Return == nil {
				return nil, fmt.Errorf("line %d: it needs lock, and a read its return", number)
			}
		case "acquire", "release", "write":
			if op.Lock == "" || op.Hold == "" {
				return nil, fmt.Errorf("line %d: an operation needs lock and hold", number)
			}
			if op.Op == "acquire" && op.Outcome == "ok" && op.Return == nil {
				return nil, fmt.Errorf("line %d: an acquire that succeeded needs return", number)
			}
		default:
			return nil, fmt.Errorf("line %d: unknown op %q", number, op.Op)
		}
		history = append(history, op)
	}
	return history, scanner.Err()
}
