import DefaultTheme from "vitepress/theme"
import type { Theme } from "vitepress"
import { Diagram } from "./Diagram"
import { Playground } from "./Playground"
import "./style.css"

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    app.component("Diagram", Diagram)
    app.component("Playground", Playground)
  }
} satisfies Theme
