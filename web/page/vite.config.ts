import { defineConfig } from 'vitest/config';

// The server answers with "default-src 'self'": nothing may be inlined as a data: URL or an inline script.
export default defineConfig({
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: { '/api': 'http://127.0.0.1:9201' },
  },
  test: {
    environment: 'node',
    include: ['src/**/*.test.ts'],
  },
});
