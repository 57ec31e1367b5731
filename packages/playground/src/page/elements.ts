/**
 * Elements from text: nothing that is shown is ever parsed as HTML.
 */

type Attributes = Readonly<Record<string, string>>

/** An element with attributes and children. */
export const el = <K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: ReadonlyArray<Node | string>
): HTMLElementTagNameMap[K] => withAll(document.createElement(tag), attributes, children)

export const svg = <K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: ReadonlyArray<Node>
): SVGElementTagNameMap[K] => withAll(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children)

const withAll = <E extends Element>(element: E, attributes: Attributes, children: ReadonlyArray<Node | string>): E => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

export const button = (text: string, attributes: Attributes, onClick: () => void): HTMLButtonElement => {
  const element = el("button", { type: "button", ...attributes }, text)
  element.addEventListener("click", onClick)
  return element
}

/** Writes a text only if it is another: the browser then has nothing to lay out. */
export const setText = (element: HTMLElement, text: string): void => {
  if (element.textContent !== text) element.textContent = text
}

export const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`
