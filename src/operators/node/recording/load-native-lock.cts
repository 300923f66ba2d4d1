/** The part of the package `fs-native-extensions` that this library uses. */
interface NativeLock {
  /**
   * Locks a range of an open file for this file descriptor.
   *
   * @returns `false` when another file descriptor has the lock
   * @throws Error when the file system does not support locks
   */
  readonly tryLock: (fd: number, offset: number, length: number) => boolean;
}

/**
 * Loads the native package. This file is CommonJS, because `require` loads the package synchronously and only when a recording begins.
 * `createRequire` needs `import.meta`, which is a syntax error in programs that are bundled or tested as CommonJS.
 *
 * @throws Error when the package has no binary for this operating system
 */
const loadNativeLock = (): NativeLock => require('fs-native-extensions') as NativeLock;

// @ts-expect-error -- Only `export =` keeps the type in a CommonJS module; tsc, swc and esbuild compile it.
export = loadNativeLock;
