import type { Locks } from './tabs/tab-channel.js';

/** The globals of a page that this library uses. A worker has some of them, and Node 21 and later has `navigator`. */
interface PageGlobals extends Partial<EventTarget> {
  readonly location?: { readonly href: string; readonly origin: string };
  readonly document?: { readonly visibilityState: string };
  readonly isSecureContext?: boolean;
  readonly navigator?: { readonly locks?: Locks };
}

/** The global object, with the types of a page. */
export const pageGlobals = globalThis as unknown as PageGlobals;
