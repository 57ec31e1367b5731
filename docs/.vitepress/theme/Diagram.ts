import { useData } from "vitepress"
import { defineComponent, h, onMounted, ref, useId, watch } from "vue"

/**
 * A Mermaid diagram, drawn in the browser; until then, and without scripts, its source is shown.
 */
export const Diagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup({ source }) {
    const text = decodeURIComponent(source)
    const svg = ref("")
    const { isDark } = useData()
    const id = `diagram-${useId()}`
    const draw = async () => {
      // half a megabyte that only pages with diagrams load
      const { default: mermaid } = await import("mermaid")
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "neutral" })
      svg.value = (await mermaid.render(id, text)).svg
    }
    onMounted(draw)
    watch(isDark, draw)
    return () =>
      svg.value === "" ? h("pre", { class: "diagram" }, text) : h("div", { class: "diagram", innerHTML: svg.value })
  }
})
