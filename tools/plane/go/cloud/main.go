// Command cloud serves two node groups of made-up machines by the protocol externalgrpc, with Go's gRPC and protobuf.
//
//	cloud DESCRIPTORS [CERT KEY CA]
//	cloud DESCRIPTORS ADDRESS METHOD REQUEST
//
// DESCRIPTORS is a FileDescriptorSet of the protocol's text, with what it imports. With CERT, KEY and CA (PEM files)
// clients must show a certificate of that authority. It prints the address that it listens on, and ends with its
// standard input. The second form asks such a server, and prints the answer: REQUEST and answer are in JSON.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const service = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 && len(args) != 4 {
		return fmt.Errorf("usage: cloud DESCRIPTORS [CERT KEY CA | ADDRESS METHOD REQUEST]")
	}
	description, err := serviceIn(args[0])
	if err != nil {
		return err
	}
	if len(args) == 4 && strings.Contains(args[1], ":") {
		return ask(description, args[1], args[2], args[3])
	}
	var options []grpc.ServerOption
	if len(args) == 4 {
		config, err := mutualTLS(args[1], args[2], args[3])
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(options...)
	server.RegisterService(described(description), newMachines())
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	return server.Serve(listener)
}

func ask(protocol protoreflect.ServiceDescriptor, address, name, text string) error {
	method := protocol.Methods().ByName(protoreflect.Name(name))
	if method == nil {
		return fmt.Errorf("no method %s", name)
	}
	in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := protojson.Unmarshal([]byte(text), in); err != nil {
		return err
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.Invoke(context.Background(), "/"+service+"/"+name, in, out); err != nil {
		return err
	}
	answer, err := protojson.Marshal(out)
	fmt.Println(string(answer))
	return err
}

func serviceIn(path string) (protoreflect.ServiceDescriptor, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName(service)
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.ServiceDescriptor), nil
}

// described makes each method of the protocol one of machines: messages go in and out in their JSON form.
func described(protocol protoreflect.ServiceDescriptor) *grpc.ServiceDesc {
	made := &grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
	for i := range protocol.Methods().Len() {
		method := protocol.Methods().Get(i)
		name := string(method.Name())
		handle := func(cloud any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
			if err := decode(in); err != nil {
				return nil, err
			}
			text, err := protojson.Marshal(in)
			if err != nil {
				return nil, err
			}
			var asked request
			if err := json.Unmarshal(text, &asked); err != nil {
				return nil, err
			}
			said, err := cloud.(*machines).answer(name, asked)
			if err != nil {
				return nil, err
			}
			if text, err = json.Marshal(said); err != nil {
				return nil, err
			}
			return out, protojson.Unmarshal(text, out)
		}
		made.Methods = append(made.Methods, grpc.MethodDesc{MethodName: name, Handler: handle})
	}
	return made
}

func mutualTLS(cert, key, authority string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate", authority)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

func refused(format string, args ...any) error {
	return status.Error(codes.FailedPrecondition, fmt.Sprintf(format, args...))
}

func missing(method string) error {
	return status.Error(codes.Unimplemented, strings.ToLower(method)+" is not part of this cloud")
}
