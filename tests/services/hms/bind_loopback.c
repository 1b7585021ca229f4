/* LD_PRELOAD: a server that binds the wildcard address binds loopback instead. The Hive Metastore has no setting for that.
   gcc -shared -fPIC -O2 -o bind_loopback.so bind_loopback.c -ldl */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

typedef int (*binder)(int, const struct sockaddr *, socklen_t);

int bind(int fd, const struct sockaddr *address, socklen_t length) {
    static binder real;
    if (!real) real = (binder)dlsym(RTLD_NEXT, "bind");
    if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in four = *(const struct sockaddr_in *)address;
        if (four.sin_addr.s_addr == htonl(INADDR_ANY)) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return real(fd, (struct sockaddr *)&four, sizeof four);
    }
    if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 six = *(const struct sockaddr_in6 *)address;
        if (IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
        return real(fd, (struct sockaddr *)&six, sizeof six);
    }
    return real(fd, address, length);
}
