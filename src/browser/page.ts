/** The globals of a page that are used here: all are missing in Node, some in a worker. */
interface Page extends Partial<EventTarget> {
  readonly location?: { readonly href: string; readonly origin: string };
  readonly document?: { readonly visibilityState: string };
}

/** Holds the globals of the page. */
export const page = globalThis as Page;
