/** Returns whether a URL points at this machine. A connection without TLS is accepted only to this machine. */
export const isLoopback = (url: URL): boolean =>
  url.hostname === 'localhost' || url.hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(url.hostname);
