// Package browser drives real browsers: Chromium over the DevTools protocol, Firefox over WebDriver BiDi,
// WebKitGTK over WebDriver. It owns starting, profiles, pages, scripts, screenshots and kills; it judges
// nothing. The browsers reach 127.0.0.1 only: everything else goes to a proxy that does not exist.
//
// Chromium and Firefox speak the same kind of protocol, JSON messages on a WebSocket, so one small client
// serves both, where a library for each would bring two languages and a generated protocol of 60,000 lines.
package browser
