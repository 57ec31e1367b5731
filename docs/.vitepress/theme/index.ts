import DefaultTheme from "vitepress/theme"
import { type Theme, useData } from "vitepress"
import { nextTick, onMounted, watch } from "vue"
import { Diagram } from "./Diagram"
import { Playground } from "./Playground"
import "./style.css"

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    app.component("Diagram", Diagram)
    app.component("Playground", Playground)
  },
  setup: () => {
    const { frontmatter } = useData()
    // what screen readers need and VitePress leaves out: a main landmark of the front page, and a name of the search button that is
    // what it shows, also where there is no room to show it
    const complete = async () => {
      await nextTick()
      const content = document.getElementById("VPContent")
      if (frontmatter.value.layout === "home") content?.setAttribute("role", "main")
      else content?.removeAttribute("role")
      for (const button of document.querySelectorAll(".DocSearch-Button")) {
        button.setAttribute("aria-label", button.textContent!.replaceAll(/\s+/g, " ").trim())
      }
    }
    onMounted(complete)
    watch(frontmatter, complete)
  }
} satisfies Theme
