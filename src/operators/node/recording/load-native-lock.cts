/** What this library uses of the package `fs-native-extensions`. */
interface NativeLock {
  /**
   * Locks a range of an open file for this file descriptor.
   *
   * @returns `false` when another file descriptor holds the lock
   * @throws Error when the file system has no locks
   */
  readonly tryLock: (fd: number, offset: number, length: number) => boolean;
}

/**
 * Loads the native package. This is CommonJS because `require` loads it synchronously and only when a recording begins; `createRequire` needs
 * `import.meta`, which is a syntax error in programs that are bundled or tested as CommonJS.
 *
 * @throws Error when the package has no binary for this system
 */
const loadNativeLock = (): NativeLock => require('fs-native-extensions') as NativeLock;

// @ts-expect-error -- A CommonJS module has no other export that keeps its type; tsc, swc and esbuild compile it.
export = loadNativeLock;
