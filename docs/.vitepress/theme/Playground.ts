import { defineComponent, h, onBeforeUnmount, onMounted, ref } from "vue"
import "../../../packages/playground/src/page/playground.css"

/**
 * The playground of packages/playground: the library itself, in the browser. It is loaded when it comes into view.
 */
export const Playground = defineComponent({
  setup() {
    const root = ref<HTMLElement>()
    const text = ref("It needs JavaScript, and a moment to load.")
    let end = () => {}
    let isGone = false
    onMounted(() => {
      const near = new IntersectionObserver(
        async (entries) => {
          if (!entries.some(({ isIntersecting }) => isIntersecting)) return
          near.disconnect()
          try {
            const { mount } = await import("../../../packages/playground/dist/page/playground.js")
            if (!isGone) end = await mount(root.value!)
          } catch (error) {
            text.value = "It could not be loaded: the browser's console says why. Reload the page to try again."
            throw error
          }
        },
        { threshold: 0.4 }
      )
      near.observe(root.value!)
      end = () => near.disconnect()
    })
    onBeforeUnmount(() => {
      isGone = true
      end()
    })
    return () => h("div", { class: "playground", ref: root }, text.value)
  }
})
