package main

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A model takes away nothing where a whole holding is left out of a history that it allows: so what fails in a part fails in the whole, and a history
// can be judged piece by piece, and made short.
type model struct {
	name  string
	takes func(operation) bool
	model porcupine.Model
}

// At most so many hold it at once, or any number of those that share it. The state is who does, in order, of one kind only.
func holders(name string, permits int) model {
	return model{name, func(op operation) bool { return op.Op != "write" }, porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) {
			op := input.(operation)
			held := strings.Split(state.(string), "\n")[1:]
			hold := op.Hold
			if op.Shared {
				hold = sharing + hold
			}
			at := sort.SearchStrings(held, hold)
			isHeld := at < len(held) && held[at] == hold
			if op.Op == "release" {
				if !isHeld {
					return false, state
				}
				return true, join(append(held[:at:at], held[at+1:]...))
			}
			isShared := len(held) > 0 && strings.HasPrefix(held[0], sharing)
			if isHeld || len(held) > 0 && op.Shared != isShared || !op.Shared && len(held) >= permits {
				return false, state
			}
			return true, join(append(held[:at:at], append([]string{hold}, held[at:]...)...))
		},
	}}
}

const sharing = "shared "

func join(held []string) string {
	state := ""
	for _, hold := range held {
		state += "\n" + hold
	}
	return state
}

func semaphore(permits int) model { return holders("semaphore", permits) }

var mutex = holders("mutex", 1)

type fence struct{ granted, written int64 }

// Tokens rise with every grant that is not shared, and the resource takes no write with a token that is older than one it has seen. Two may hold the lock
// at once.
var fenced = model{"fenced", func(op operation) bool { return op.Op == "acquire" && !op.Shared || isWritten(op) }, porcupine.Model{
	Init: func() any { return fence{} },
	Step: func(state, input, _ any) (bool, any) {
		op, s := input.(operation), state.(fence)
		if op.Op == "acquire" {
			return op.Token > s.granted, fence{op.Token, s.written}
		}
		return op.Token >= s.written && op.Token <= s.granted, fence{s.granted, op.Token}
	},
}}

func isWritten(op operation) bool { return op.Op == "write" && op.Outcome == "ok" }

// No write replaces a version later than the one that its writer had read. The state is the number of versions that are known to have been.
var register = model{"register", func(op operation) bool { return isWritten(op) && op.Version != nil }, porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		version := *input.(operation).Version
		return version >= state.(int), version + 1
	},
}}

// An element of a set: what was added stays. The input is whether a read has found it, or nil where it is added.
var element = porcupine.Model{
	Init: func() any { return false },
	Step: func(state, input, _ any) (bool, any) {
		return input == nil || input == state, input == nil || state.(bool)
	},
}

// Counts the elements that a read should have found and has not, or has found though nobody can have added them.
func missing(holdings []holding, reads []operation) (count int, first []holding) {
	found := make([]map[string]bool, len(reads))
	by := map[string]holding{}
	for i, read := range reads {
		found[i] = map[string]bool{}
		for _, name := range read.Elements {
			found[i][name], by[name] = true, holding{{Op: "read", Lock: read.Lock, Element: name, Call: read.Call, Return: read.Return}}
		}
	}
	for _, h := range holdings {
		for _, op := range h {
			if op.Element != "" {
				by[op.Element] = h
			}
		}
	}
	for name, h := range by {
		var history []porcupine.Operation
		for _, op := range h {
			if op.Op == "write" && op.Element == name {
				history = append(history, porcupine.Operation{Call: nanos(&op.Call), Return: nanos(op.Return)})
			}
		}
		for i, read := range reads {
			history = append(history, porcupine.Operation{Input: found[i][name], Call: nanos(&read.Call), Return: nanos(read.Return)})
		}
		if porcupine.CheckOperations(element, history) {
			continue
		}
		if count++; first == nil || h.end() < first[0].end() {
			first = []holding{h}
		}
	}
	return count, first
}

// A grant with what was done under it: its acquire first.
type holding []operation

func (h holding) end() float64 {
	end := h[0].Call
	for _, op := range h[1:] {
		end = max(end, op.Call)
	}
	return end
}

func hasTokens(holdings []holding) bool {
	return slices.ContainsFunc(holdings, func(h holding) bool { return h[0].Token != 0 && !h[0].Shared })
}

func hasVersions(holdings []holding) bool {
	return slices.ContainsFunc(holdings, func(h holding) bool { return slices.ContainsFunc(h, register.takes) })
}

func readsOf(operations []operation) (reads []operation) {
	for _, op := range operations {
		if op.Op == "read" {
			reads = append(reads, op)
		}
	}
	return reads
}

// The holdings in the order in which they are known to have begun. What was not granted or refused is left out, and a write whose outcome is unknown may
// take effect at any time, or never.
func holdingsOf(operations []operation) ([]holding, int) {
	byHold := map[string]holding{}
	refused := 0
	for _, op := range operations {
		if op.Op == "acquire" && op.Outcome == "ok" {
			byHold[op.Hold] = holding{op}
		}
	}
	for _, op := range operations {
		h, granted := byHold[op.Hold]
		if op.Op == "acquire" || !granted {
			continue
		}
		if op.Op == "write" {
			if op.Outcome == "refused" {
				refused++
			}
			if op.Outcome != "ok" && op.Outcome != "unknown" {
				continue
			}
			if op.Outcome == "unknown" {
				op.Return = nil
			}
		}
		byHold[op.Hold] = append(h, op)
	}
	holdings := make([]holding, 0, len(byHold))
	for _, h := range byHold {
		isEnded := false
		for _, op := range h {
			isEnded = isEnded || op.Op == "release"
		}
		if !isEnded {
			end := h[0]
			end.Op, end.Call, end.Return = "release", *h[0].Return, nil
			h = append(h, end)
		}
		holdings = append(holdings, h)
	}
	sort.Slice(holdings, func(i, j int) bool { return *holdings[i][0].Return < *holdings[j][0].Return })
	return holdings, refused
}

// Milliseconds as nanoseconds; an operation of which nobody knows the end ends last.
func nanos(millis *float64) int64 {
	if millis == nil {
		return math.MaxInt64
	}
	return int64(*millis * 1e6)
}

const patience = 30 * time.Second

func check(m model, holdings []holding) porcupine.CheckResult {
	var history []porcupine.Operation
	for _, h := range holdings {
		for _, op := range h {
			if m.takes(op) {
				history = append(history, porcupine.Operation{Input: op, Call: nanos(&op.Call), Return: nanos(op.Return)})
			}
		}
	}
	return porcupine.CheckOperationsTimeout(m.model, history, patience)
}

func fails(m model, holdings []holding) bool { return check(m, holdings) == porcupine.Illegal }

// How many holdings are judged at once, and how many of those before stay with them: as many fibers wait at a time at most. A holding that
// has not ended stays as well.
const window, overlap = 400, 64

// Counts the holdings that have to be left out of the history so that it is right, of each anomaly the one that ended last; how many pieces
// Porcupine could not decide in time; and shows the first anomaly with as few holdings as show it.
func anomalies(m model, rest []holding) (count, undecided int, first []holding) {
	var piece []holding
	for len(rest) > 0 {
		n := min(window, len(rest))
		piece, rest = append(piece, rest[:n]...), rest[n:]
		for {
			result := check(m, piece)
			if result == porcupine.Unknown {
				undecided++
			}
			if result != porcupine.Illegal {
				break
			}
			until := sort.Search(len(piece), func(k int) bool { return fails(m, piece[:k+1]) })
			short := shrink(m, piece[:until+1])
			if count++; count == 1 {
				first = short
			}
			last := short[0]
			for _, h := range short {
				if h.end() > last.end() {
					last = h
				}
			}
			piece = without(piece, slices.IndexFunc(piece, func(h holding) bool { return h[0].Hold == last[0].Hold }))
		}
		if len(rest) == 0 {
			break
		}
		var open []holding
		for i, h := range piece {
			if i >= len(piece)-overlap || h.end() >= rest[0][0].Call {
				open = append(open, h)
			}
		}
		piece = open
	}
	return count, undecided, first
}

// Leaves out what the anomaly does not need.
func shrink(m model, holdings []holding) []holding {
	from := sort.Search(len(holdings), func(i int) bool { return !fails(m, holdings[i:]) })
	holdings = holdings[from-1:]
	for i := 0; i < len(holdings); {
		if less := without(holdings, i); fails(m, less) {
			holdings = less
		} else {
			i++
		}
	}
	return holdings
}

func without(holdings []holding, i int) []holding {
	return append(append([]holding{}, holdings[:i]...), holdings[i+1:]...)
}
