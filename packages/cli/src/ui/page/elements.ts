/**
 * Elements from text: nothing that is shown is ever parsed as HTML.
 */

export type Child = Node | string

/** An element with attributes and children. */
export const el = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: ReadonlyArray<Child>
): HTMLElementTagNameMap[K] => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

/** A number, what it counts, and perhaps more about it. */
export const number = (title: string, value: Child, ...more: ReadonlyArray<Child>): HTMLElement =>
  el("div", { class: "number" }, value, el("span", { class: "what" }, title), ...more)

/** The value of a {@link number}. */
export const valueOf = (text: string): HTMLElement => el("span", { class: "value" }, text)

/** Writes a text only if it is another: the browser then has nothing to lay out. */
export const setText = (element: HTMLElement, text: string): void => {
  if (element.textContent !== text) element.textContent = text
}

/** An element of index.html. */
export const byId = (id: string): HTMLElement => {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`index.html has no #${id}`)
  return element
}

export const button = (text: string, attributes: Readonly<Record<string, string>>, onClick: () => void) => {
  const element = el("button", { type: "button", ...attributes }, text)
  element.addEventListener("click", onClick)
  return element
}
