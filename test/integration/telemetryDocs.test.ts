/**
 * The dashboard, the alerts and the page on telemetry know the metrics that a run exports, and no others.
 */
import { IoRedis } from "@effect-redis-lock/ioredis"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Metric } from "effect"
import {
  FairLock,
  FencedLock,
  Lock,
  LockMetrics,
  MultiLock,
  NonReentrantLock,
  PermitSemaphore,
  ReadWriteLock,
  RedisLock,
  RedLock,
  Semaphore,
  SpinLock
} from "effect-redis-lock"
import { PrometheusMetrics } from "effect/observability"
import { readFileSync } from "node:fs"
import { withOwnMetrics } from "../kit/metrics.ts"
import { freshName } from "../kit/names.ts"
import { redisUrl } from "../kit/server/redisUrl.ts"
import { testLive } from "../kit/test.ts"

const docs = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8")

/** A lock of every kind is acquired and released; then `look` sees the metrics. */
const afterARun = <A>(look: Effect.Effect<A>) =>
  Effect.gen(function* () {
    const name = freshName()
    const { readLock, writeLock } = ReadWriteLock.make(`${name}:page`)
    for (const lock of [
      Lock.make(name),
      FairLock.make(`${name}:fair`),
      FencedLock.make(`${name}:fenced`),
      SpinLock.make(`${name}:spin`),
      NonReentrantLock.make(`${name}:once`),
      NonReentrantLock.make(`${name}:once fair`, { fair: true }),
      readLock,
      writeLock,
      MultiLock.make([Lock.make(name), Lock.make(`${name}:b`)]),
      RedLock.make([Lock.make(name)]),
      RedLock.make([readLock]),
      RedLock.make([writeLock])
    ] as ReadonlyArray<Lock.Lock<RedisLock.RedisLock, unknown, unknown>>) {
      yield* Lock.withLock(Effect.void, lock)
    }
    yield* Semaphore.withPermits(Effect.void, Semaphore.make(`${name}:permits`, { permits: 1 }), 1)
    yield* PermitSemaphore.withPermit(Effect.void, PermitSemaphore.make(`${name}:leased`, { permits: 1 }))
    return yield* look
  }).pipe(
    Effect.provide(Layer.provide(RedisLock.layer(), IoRedis.layer({ url: redisUrl }))),
    Effect.orDie,
    withOwnMetrics
  )

const exported = afterARun(PrometheusMetrics.format({ metricNameMapper: LockMetrics.prometheusName }))

/** The labels of each time series in Prometheus's format, each with its values. */
const seriesOf = (page: string): ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>> => {
  const series = new Map<string, Map<string, Set<string>>>()
  for (const [, name, selector] of page.matchAll(/^(\w+)(?:\{(.*)\})? /gm)) {
    const labels = series.get(name!) ?? new Map<string, Set<string>>()
    series.set(name!, labels)
    for (const [, label, value] of (selector ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels.set(label!, (labels.get(label!) ?? new Set()).add(value!))
    }
  }
  return series
}

/** What Prometheus itself adds. */
const labelsOfTargets = ["job", "instance"]

/** Everything in these expressions that no run exports. */
const unknownIn = (expressions: ReadonlyArray<string>, page: string): ReadonlyArray<string> => {
  const series = seriesOf(page)
  return expressions.flatMap((expression) => {
    const unknown: Array<string> = []
    const grouped = new Set(labelsOfTargets)
    for (const [, name, selector] of expression.matchAll(/\b(redis_lock_\w+)(?:\{(.*?)\})?/g)) {
      const labels = series.get(name!)
      if (labels === undefined) {
        unknown.push(name!)
        continue
      }
      for (const label of labels.keys()) grouped.add(label)
      for (const [, label, values] of (selector ?? "").matchAll(/(\w+)(?:=~|!~|!=|=)"(.*?)"/g)) {
        if (labelsOfTargets.includes(label!)) continue
        for (const value of values!.split("|")) {
          if (labels.get(label!)?.has(value) !== true) unknown.push(`${name} ${label}=${value}`)
        }
      }
    }
    for (const [, labels] of expression.matchAll(/\bby \((.*?)\)/g)) {
      for (const label of labels!.split(/,\s*/)) if (!grouped.has(label)) unknown.push(`by ${label} in ${expression}`)
    }
    return unknown
  })
}

interface Panel {
  readonly title: string
  readonly targets: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
}

/** Metrics without what Prometheus adds to a histogram. */
const metricsIn = (texts: ReadonlyArray<string>) =>
  new Set(
    texts.flatMap((text) =>
      [...text.matchAll(/\bredis_lock_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ""))
    )
  )

testLive(
  "Every metric, label and value in the dashboard is one that a run exports, and every metric is on a panel",
  function* () {
    const page = yield* exported
    const { panels } = JSON.parse(docs("grafana-dashboard.json")) as { readonly panels: ReadonlyArray<Panel> }
    const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    assert.isAbove(expressions.length, 10)
    assert.deepStrictEqual(unknownIn(expressions, page), [])
    for (const { targets, title } of panels) {
      for (const { expr, legendFormat } of targets) {
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
          assert.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), title)
        }
      }
    }
    assert.deepStrictEqual([...metricsIn(expressions)].toSorted(), [...metricsIn([page])].toSorted())
  }
)

testLive("Every metric, label and value in the alerts is one that a run exports", function* () {
  const rules = docs("prometheus-alerts.yaml")
    .split(/^ +- alert: /m)
    .slice(1)
  const parsed = rules.map((rule) => ({
    name: /^\w+/.exec(rule)![0],
    expression: /^ +expr: (?:\|-\n)?([^]*?)\n +(?:for|labels):/m.exec(rule)![1]!,
    // annotations show labels that the expression keeps
    shown: [...rule.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!)
  }))
  assert.isAbove(parsed.length, 5)
  assert.deepStrictEqual(
    unknownIn(
      parsed.map(({ expression }) => expression),
      yield* exported
    ),
    []
  )
  for (const { expression, name, shown } of parsed) {
    for (const label of shown) assert.match(expression, new RegExp(`by \\([^)]*\\b${label}\\b`), `${name}: ${label}`)
  }
})

/** The minutes of a rule. */
const minutesIn = (rule: string, pattern: RegExp) => [...rule.matchAll(pattern)].map(([, minutes]) => Number(minutes))

it("No alert that is about something that lasts fires for a single event", () => {
  const rules = docs("prometheus-alerts.yaml")
    .split(/^ +- alert: /m)
    .slice(1)
    .map((rule) => ({
      name: /^\w+/.exec(rule)![0],
      // an event counts as a rise for so long
      range: Math.max(0, ...minutesIn(rule, /\[(\d+)m\]/g)),
      lasting: minutesIn(rule, /^ +for: (\d+)m$/gm)[0],
      says: /^ +summary: .* for (a|\d+) minutes?\b/m.exec(rule)?.[1]
    }))
  const lasting = rules.filter(({ lasting }) => lasting !== undefined)
  assert.isAbove(lasting.length, 3)
  for (const { lasting: minutes, name, range, says } of lasting) {
    assert.isAtLeast(minutes!, range, name)
    // "for a minute" is what lasts a minute beyond the event that began it
    if (says === "a") assert.isAtLeast(minutes! - range, 1, name)
    else if (says !== undefined) assert.isAtLeast(minutes!, Number(says), name)
  }
})

testLive(
  "A metric that no run exports, an unknown label and an unknown value are found in an expression",
  function* () {
    const wrong = `sum by (lock_name) (redis_lock_held{lock_kind="fare"}) / redis_lock_gone`
    assert.deepStrictEqual(unknownIn([wrong], yield* exported), [
      "redis_lock_held lock_kind=fare",
      "redis_lock_gone",
      `by lock_name in ${wrong}`
    ])
  }
)

testLive(
  "docs/telemetry.md lists every metric that a run exports with its type, unit and attributes, and no other",
  function* () {
    const documented = [...docs("telemetry.md").matchAll(/^\| `(redis_lock\.[\w.]+)` \| (.*) \|$/gm)].map(
      ([, name, rest]) => {
        const [type, unit, attributes, prometheus] = rest!.split(" | ").map((cell) => cell.replaceAll("`", ""))
        return { name, type, unit, attributes: attributes!.split(", ").toSorted(), prometheus }
      }
    )
    const metrics = new Map(
      (yield* afterARun(Metric.snapshot)).map(({ attributes = {}, id, type }) => {
        const { unit, ...others } = attributes as Record<string, string>
        return [
          id,
          {
            name: id,
            type: type.toLowerCase(),
            unit,
            attributes: Object.keys(others).toSorted(),
            prometheus: LockMetrics.prometheusName(id)
          }
        ]
      })
    )
    const byName = (a: { readonly name?: string | undefined }, b: { readonly name?: string | undefined }) =>
      a.name! < b.name! ? -1 : 1
    assert.deepStrictEqual(documented.toSorted(byName), [...metrics.values()].toSorted(byName))
    for (const name of metrics.keys()) assert.include(docs("telemetry.md"), `- \`${name}\`: `)
  }
)

testLive("docs/telemetry.md lists every kind of lock that a run exports, and every reason of a loss", function* () {
  const series = seriesOf(yield* exported)
  for (const [name, label] of [
    ["redis_lock_acquisitions_total", "lock_kind"],
    ["redis_lock_losses_total", "lock_loss_reason"],
    ["redis_lock_reconnects_total", "lock_connection"]
  ] as const) {
    const row = docs("telemetry.md")
      .split("\n")
      .find((line) => line.startsWith(`| \`${label.replaceAll("_", ".")}\` | `))
    for (const value of series.get(name)!.get(label)!) assert.include(row, `\`${value}\``)
  }
})
